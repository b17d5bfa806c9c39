"""Measurements of evaluators."""
