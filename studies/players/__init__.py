"""Measurements of players."""
