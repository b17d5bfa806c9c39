"""Games: who is stronger, by how much, and how sure that is.

* `openings` – where games begin: `Opening` for one game, `Openings` for many;
* `playing` – agents, one game at a time, and matches; `batch` – many games in step; `networks` – players of these;
* `results` – wins, draws, losses, discs and their errors, whoever played;
* `options`, `tournament`, `storage` – round robins and gauntlets, resumable, on all cores;
* `ratings`, `standings` – Elo by Davidson's model, tables;
* `sprt` – the sequential test of "A is stronger than B by x Elo";
* `winrate` – the win rate with a bound that holds whenever one stops.
"""
