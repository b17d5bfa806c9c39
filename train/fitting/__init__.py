"""Networks fitted to labels: engines, losses, stages from solved endgames back to the opening, selective search."""
