"""Shared by all tests: hypothesis draws the same examples every time."""

from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("deterministic")
