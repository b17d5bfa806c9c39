"""The client of the game server."""
