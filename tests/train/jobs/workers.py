"""Workers for tests: they do what a job says, or refuse to start."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from reversi_env import ReversiError
from train.jobs.ray import job_device


class Worker:
    def __init__(self, folder=None):
        self.folder = folder

    def __call__(self, job):
        if job == "refuse":
            raise ReversiError("I will not")
        if job == "fail":
            raise ZeroDivisionError
        if job == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if job == "die once":
            mark = Path(self.folder) / "died"
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return job, os.getpid()


class DeviceWorker:
    """Returns the device that Ray has assigned to its job."""

    def __call__(self, job):
        time.sleep(0.2)
        return job_device()


class RefusingWorker:
    def __init__(self):
        raise ReversiError("I will not")


@dataclass(frozen=True)
class Options:
    """Options that name files."""

    specs: tuple[str, ...] = ()
    book: str = ""
    games: int = 1


class Reader:
    """Returns the text of the file that its options name."""

    def __init__(self, options):
        self.options = options

    def __call__(self, job):
        return job, Path(self.options.specs[0].partition("weights=")[2]).read_text(), self.options.specs[0]
