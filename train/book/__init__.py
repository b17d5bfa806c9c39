"""Opening books: built by best-first search of leaves (`building`). `search.book` reads them."""
