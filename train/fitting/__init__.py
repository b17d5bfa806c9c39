"""Fitting of pattern networks, and training from scratch."""
