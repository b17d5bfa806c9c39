"""Opening books: built by best-first search of leaves (`building`). `search.agents.book` reads them."""
