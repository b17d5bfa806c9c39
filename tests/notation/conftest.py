"""Where the large public files are: FFO test positions and the WTHOR database, which the project works without."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def external_data() -> Path:
    """The folder named by REVERSI_DATA, by default ../shared/data; tests that need it are skipped without it."""
    folder = Path(os.environ.get("REVERSI_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no external data in {folder}: set REVERSI_DATA to a folder with ffo/*.obf and wthor/*.wtb")
    return folder


@pytest.fixture(scope="session")
def wthor_paths(external_data: Path) -> list[Path]:
    """The WTHOR files of the external data, in order of the year."""
    paths = sorted((external_data / "wthor").glob("*.wtb"))
    if not paths:
        pytest.skip(f"no wthor/*.wtb in {external_data}")
    return paths


@pytest.fixture(scope="session")
def ffo_paths(external_data: Path) -> list[Path]:
    """The FFO files of the external data."""
    paths = sorted((external_data / "ffo").glob("*.obf"))
    if not paths:
        pytest.skip(f"no ffo/*.obf in {external_data}")
    return paths
