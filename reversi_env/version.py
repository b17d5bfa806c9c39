"""The version of all packages, for modules below `reversi_env` itself."""

__version__ = "0.2.0"
