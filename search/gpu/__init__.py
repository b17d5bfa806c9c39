"""Search on a GPU: exact endgame labels, hundreds of thousands per second. Needs the extra ``cuda``."""
