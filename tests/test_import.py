"""What `import reversi_env` costs and pulls in."""

import resource
import subprocess
import sys

PROBE = """
import sys
import reversi_env
heavy = {"torch", "stable_baselines3", "PIL", "pygame", "matplotlib", "search", "models", "train", "play"}
print(sorted(heavy & set(sys.modules)))
"""


def child_cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_the_import_is_light():
    """Below one second with a warm cache (processor time, which a busy machine does not stretch), and no torch."""
    seconds: list[float] = []
    while len(seconds) < 4 and min(seconds, default=1.0) >= 1.0:
        before = child_cpu_seconds()
        result = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
        seconds.append(child_cpu_seconds() - before)
        assert result.stdout.strip() == "[]"
    assert min(seconds) < 1.0
