"""Measurements of trainings."""
