"""The game in a terminal: the board, the commands, the saved games."""
