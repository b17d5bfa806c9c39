"""Training by self-play, as AlphaZero does: a residual network plays itself, and a tree search chooses every move.

`options` has the options, with presets by board and device. `games` plays a generation (`playing`: games in step), `learner` takes
the network's steps, `measuring` tells how good it is (`players`, `figures`), and `run` is the whole training in a folder.
"""
