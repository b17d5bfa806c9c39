"""Value networks for the searcher and their trained weights. Nothing is here yet."""
