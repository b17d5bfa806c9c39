"""Games on the server: rooms, clocks, the database."""
