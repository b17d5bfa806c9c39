"""Experiments of the five student reports."""
