"""The teacher: a residual network that learns by playing itself on one device, and compiled networks that learn from it.

`options` says what is asked, `games` plays (`playing`: as AlphaZero does, too), `learner` takes the network's steps, and
`run` is the whole training in a folder. `distil` fits a compiled network to what the teacher says.
"""
