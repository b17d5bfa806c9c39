"""Residual policy-value networks, and their fast inference."""
