"""AlphaZero: a residual network that learns from games whose every move a tree search has chosen.

`options` says what is asked, `games` plays, `players` has the network as a player of many games, and `run` is the whole training
in a folder; learner, memory and checkpoints are the teacher's (`train.teacher`).
"""
