"""Search on a GPU: exact endgame labels by the hundred thousand a second. Needs the extra ``cuda``."""
