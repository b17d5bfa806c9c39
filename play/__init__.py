"""User interfaces: the `reversi` command, the game server with its web page, and protocols of other programs."""
