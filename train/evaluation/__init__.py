"""How good values and moves are, judged against exact scores."""
