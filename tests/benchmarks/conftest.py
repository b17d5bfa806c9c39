"""The fixtures of the server's tests."""

from tests.play.server.conftest import api, clean_log, new_server

__all__ = ["api", "clean_log", "new_server"]
