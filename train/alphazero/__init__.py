"""AlphaZero: a residual network trained by self-play, in which a tree search chooses every move."""
