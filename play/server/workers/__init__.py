"""Search processes of the server, and what they do."""
