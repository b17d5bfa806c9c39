"""Matches between agents; labels, training and experiments will stand here."""
