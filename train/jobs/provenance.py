"""Which machine and which versions a figure was measured with: no speed is worth reading without them."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version


def cpu_name() -> str:
    """The processor's name as the operating system has it, its architecture and its number of CPUs."""
    name = platform.processor() or platform.machine()
    try:  # /proc/cpuinfo names no ARM processor
        known = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})
        models = re.findall(r"^Model name: +(.*\S)", known.stdout, re.M)
        name = models[0] if models else name
    except (OSError, subprocess.SubprocessError):
        pass
    return f"{name} ({platform.machine()}, {os.cpu_count()} CPUs)"


def versions(*packages: str) -> dict[str, str | None]:
    """Versions of Python and the named distributions; None where one is not installed."""
    result: dict[str, str | None] = {"python": platform.python_version()}
    for package in packages:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            result[package] = None
    return result
