"""Provenance of results: command, version, commit, machine and versions of libraries."""

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from reversi_env import __version__
from train.jobs.shipping import PACKAGES, ROOT


def cpu_name() -> str:
    """Return the processor's name, its architecture and its number of CPUs."""
    name = platform.processor() or platform.machine()
    try:  # /proc/cpuinfo names no ARM processor
        lscpu = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})
        models = re.findall(r"^Model name: +(.*\S)", lscpu.stdout, re.M)
        name = models[0] if models else name
    except (OSError, subprocess.SubprocessError):
        pass
    return f"{name} ({platform.machine()}, {os.cpu_count()} CPUs)"


def versions(*packages: str) -> dict[str, str | None]:
    """Return the versions of Python and of distributions, None for one that is not installed."""
    result: dict[str, str | None] = {"python": platform.python_version()}
    for package in packages:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            result[package] = None
    return result


def provenance(command: str) -> dict[str, Any]:
    """Return the command, version and commit of a result; the commit only in a checkout of the project."""
    return {"command": command, "version": __version__, "commit": commit()}


def commit(*others: str) -> str | None:
    """Return the commit of the checkout, with ``-dirty`` if code of the `PACKAGES` or *others* was changed; None without git."""
    head = _git("rev-parse", "HEAD") if (ROOT / ".git").exists() else None
    return f"{head}-dirty" if head and _git("status", "--porcelain", "--", *PACKAGES, *others) else head


def _git(*arguments: str) -> str | None:
    try:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
