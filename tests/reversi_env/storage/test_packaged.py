"""Packaged files: each has a checksum; a corrupted file or one without a checksum is rejected by name."""

import shutil

import pytest

from models.evaluator import FOLDER
from reversi_env.storage.packaged import DATA, SUMS, PackagedFileError, packaged_bytes
from tests.conftest import REPOSITORY

#: Files with checksums of their own.
SELF_CHECKED = (FOLDER, REPOSITORY / "search" / "agents" / "books")


def test_every_data_file_has_a_checksum():
    packages = ("reversi_env", "search", "models", "train", "play")  # not build/, which pip leaves
    folders = [path.parent for name in packages for path in (REPOSITORY / name).glob("**/" + SUMS)]
    assert len(folders) == 4
    for folder in folders:
        listed = {line.split()[1] for line in (folder / SUMS).read_text().splitlines()}
        data = {path.name for path in folder.iterdir() if path.suffix in (".json", ".npy", ".npz", ".obf", ".txt")}
        assert listed == data
        for name in listed:
            packaged_bytes(folder / name)
    binary = (
        path for name in ("reversi_env", "search", "models", "train") for path in (REPOSITORY / name).rglob("*.*")
    )
    others = {path.parent for path in binary if path.suffix in (".npy", ".npz", ".obf", ".safetensors")} - {*folders}
    assert others == {*SELF_CHECKED, FOLDER / "residual"}


@pytest.mark.parametrize("content", [None, "", "0 openings.txt\n", "no sum\n", "0"])
def test_file_without_checksum_is_rejected(tmp_path, content):
    path = shutil.copy(DATA / "openings.txt", tmp_path / "openings.txt")
    if content is not None:
        (tmp_path / SUMS).write_text(content)
    with pytest.raises(PackagedFileError, match=str(tmp_path)):
        packaged_bytes(path)
