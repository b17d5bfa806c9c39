"""Value networks: torch modules to train, their forward pass compiled into the search, and trained weights.

`models.network` is the way in for players and searchers; it needs no torch. `models.trainable` is for those who train.
"""
