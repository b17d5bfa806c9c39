"""Monte-Carlo tree search over many games at once (Gumbel and PUCT)."""
