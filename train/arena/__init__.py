"""Tournaments and ratings: openings, matches, games in batches, results, Elo, SPRT."""
