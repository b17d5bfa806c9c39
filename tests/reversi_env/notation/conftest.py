"""The WTHOR database, a large public file that the project works without."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def wthor_paths(external_data: Path) -> list[Path]:
    """The WTHOR files of the external data, in order of the year."""
    paths = sorted((external_data / "wthor").glob("*.wtb"))
    if not paths:
        pytest.skip(f"no wthor/*.wtb in {external_data}")
    return paths
