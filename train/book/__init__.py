"""Building and checking opening books, which `search.agents.book` reads, and recorded games beside them."""
