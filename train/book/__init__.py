"""Books of openings: made by searching leaf after leaf (`building`), merged, and written as text (`exporting`).

`search.book` reads them.
"""
