"""Building and checking opening books, which `search.agents.book` reads; and statistics of recorded games."""
