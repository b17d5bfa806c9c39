"""Measurements of game trees."""
