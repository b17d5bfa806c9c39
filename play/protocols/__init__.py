"""Protocols by which other programs use our agents: GTP and the NBoard engine protocol."""
