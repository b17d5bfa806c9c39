"""The server of the server's tests."""

from tests.play.server.conftest import api, clean_log, special

__all__ = ["api", "clean_log", "special"]
