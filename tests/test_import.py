"""What `import reversi_env` costs and pulls in."""

import resource
import subprocess
import sys

LIBRARIES = "import gymnasium, numba"
PROBE = """
import sys
import reversi_env
heavy = {"torch", "stable_baselines3", "PIL", "pygame", "matplotlib", "search", "models", "train", "play"}
print(sorted(heavy & set(sys.modules)))
"""


def processor_seconds(code):
    """What a new process takes to run *code*, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result.stdout.strip()


def test_the_import_is_light():
    """Below one second of processor time with a warm cache, and no torch.

    A machine that is too slow or too busy for that has 1.7 times what the two libraries alone take there, measured in turn.
    """
    for _ in range(4):
        seconds, heavy = processor_seconds(PROBE)
        assert heavy == "[]"
        if seconds < 1.0 or seconds < 1.7 * processor_seconds(LIBRARIES)[0]:
            return
    raise AssertionError(f"importing reversi_env took {seconds:.2f} s of processor time")
