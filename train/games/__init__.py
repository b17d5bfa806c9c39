"""The arena: who is stronger, by how much, and how sure that is.

* `openings`, `games` – where games begin, and how one is played;
* `options`, `tournament`, `storage`, `workers` – round robins and gauntlets, resumable, on all cores;
* `ratings`, `standings`, `plot` – Elo by Davidson's model, tables, a picture;
* `sprt` – the sequential test of "A is stronger than B by so many Elo";
* `winrate` – the win rate with a bound that holds whenever one stops.
"""
