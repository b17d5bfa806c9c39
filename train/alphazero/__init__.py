"""Training by self-play, as AlphaZero does: a residual network plays itself, and a tree search chooses every move.

`options` says what is asked, with presets for the two that are made so: ``zero``, which plays, and ``teacher``, whose values other
networks learn from. `games` plays a generation (`playing`: games in step), `learner` takes the network's steps, `measuring` tells
how good it is (`players`, `figures`), and `run` is the whole training in a folder. `distil` fits a compiled network to it.
"""
