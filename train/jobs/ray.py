"""A Ray cluster as an executor: one task a job, redone by Ray when its worker or its machine is lost.

Jobs and results are small and travel inside the task's messages. What the workers are made of, with the files that it names, is put
into the object store once; a worker process fetches it at its first job, and keeps what it has made of it for the next ones.
Tasks belong to this process's connection: when it ends, in whatever way, Ray ends them.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from reversi_env import ReversiError, __version__, plugins
from reversi_env.errors import extra_libraries, quoted
from train.jobs.processes import RETRIES, Answer, Make, answer, close, opened
from train.jobs.shipping import Parcel, build, parcels, relocated, unpacked

#: A running cluster that RAY_ADDRESS or this machine knows, or else a new one on this machine; always a new one.
AUTO, LOCAL = "auto", "local"
#: Jobs under way for each that can be done at once: nobody waits for the next.
AHEAD = 2
#: Seconds until a head that does not answer is given up, and between two looks at how large the cluster is.
CONNECT_SECONDS, LOOK_SECONDS = 5.0, 2.0
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[\w.-]+):(\d{1,5})")


class RayCluster:
    """A cluster by its *address*, HOST:PORT of its head, ``auto`` or ``local``; connected to within its context.

    A connection that this process has already is used, and left as it is. *tell* hears of machines that come and go.
    """

    def __init__(self, address: str = AUTO, tell: Callable[[str], None] = lambda words: None) -> None:
        self.address = checked_address(address)
        self._tell = tell
        self._ray = _ray()
        self._ours = False
        self._looked, self._known = -LOOK_SECONDS, 0

    def __enter__(self) -> RayCluster:
        if not self._ray.is_initialized():
            _connect(self._ray, self.address)
            self._ours = True
        if not self.cpus():
            self.__exit__()
            raise ReversiError(f"Ray cluster {self.address} has no CPUs: expected machines that work")
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours:
            self._ray.shutdown()
            self._ours = False

    def cpus(self) -> int:
        """CPUs of all machines that are there, as far as is known; they come and go, which is told."""
        if monotonic() - self._looked >= LOOK_SECONDS:
            before, self._looked = self._known, monotonic()
            self._known = int(self._ray.cluster_resources().get("CPU", 0))
            if before not in (0, self._known):
                self._tell(f"CPUs of the Ray cluster: {self._known} now, {before} before")
        return self._known

    def workers(self, make: Make, *arguments: Any, cpus: int = 1) -> RayWorkers:
        """Workers wherever the cluster has so many CPUs for one."""
        most = max(int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"])
        if cpus > most:  # Ray would wait for ever
            raise ReversiError(
                f"{cpus} threads a worker: expected at most {most}, the CPUs of the cluster's largest machine"
            )
        return RayWorkers(self._ray, self.cpus, Setup(make, arguments, parcels(arguments), build()), cpus)


@dataclass(frozen=True)
class Setup:
    """What a worker is made of, and which build of the package it must be."""

    make: Make
    arguments: tuple[Any, ...]
    files: tuple[Parcel, ...]
    build: str


class RayWorkers:
    """Tasks of one kind. Those that nobody waits for any more end with the connection, or when they are done.

    They are not cancelled: ``ray.cancel`` aborts the process that calls it if the task ends at that very moment (Ray 2.60,
    "Tried to complete task that was not pending").
    """

    def __init__(self, ray: Any, cpus: Callable[[], int], setup: Setup, cpus_each: int) -> None:
        self._ray, self._cpus, self._cpus_each = ray, cpus, cpus_each
        self._name = uuid.uuid4().hex
        self._setup = ray.put(pickle.dumps(setup))  # as bytes: what cannot be read there is told as an answer
        self._task = ray.remote(do_job).options(num_cpus=cpus_each, max_retries=RETRIES, name="reversi job")
        self._pending: list[Any] = []

    @property
    def size(self) -> int:
        """Jobs that are done at the same time; machines come and go."""
        return max(1, self._cpus() // self._cpus_each)

    def results(self, jobs: Iterator[Any]) -> Iterator[Any]:
        """The results of all *jobs*, as they come; a job is asked for when there is somebody to do it."""
        while True:
            while len(self._pending) < AHEAD * self.size and (job := next(jobs, None)) is not None:
                self._pending.append(self._task.remote(self._name, [self._setup], job))
            if not self._pending:
                return
            ready, _ = self._ray.wait(self._pending, timeout=LOOK_SECONDS)
            if ready:  # all that are there by now
                ready, _ = self._ray.wait(self._pending, num_returns=len(self._pending), timeout=0)
            for task in ready:
                self._pending.remove(task)
                yield opened(self._answer(task))

    def __enter__(self) -> RayWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pending.clear()

    def _answer(self, task: Any) -> Answer:
        errors = self._ray.exceptions
        try:
            return self._ray.get(task)
        except errors.RayTaskError as error:  # not from a job, whose errors are answers: the worker never came so far
            raise ReversiError(
                f"a machine of the cluster cannot run jobs ({_lines(error)[-1]}): expected the package, "
                f"reversi-lab {__version__} with its extra 'cluster', to be installed on all"
            ) from None
        except errors.RayError as error:
            raise ReversiError(
                f"a job was lost with its worker {RETRIES + 1} times ({type(error).__name__}: {_lines(error)[0]}): "
                f"expected a job that workers survive"
            ) from None


# --- in a worker ----------------------------------------------------------------------------------

#: The pool that this process works for, and its worker.
_current: tuple[str, Callable[[Any], Any]] | None = None


def do_job(pool: str, setup: list[Any], job: Any) -> Answer:
    """A Ray task: do a job for a pool. The list keeps Ray from fetching the setup for every job."""

    def worker() -> Callable[[Any], Any]:
        global _current
        if _current is None or _current[0] != pool:
            previous, _current = _current, None
            close(previous and previous[1])
            _current = pool, _made(_ray().get(setup[0]))
        return _current[1]

    return answer(worker, job)


def _made(setup: bytes) -> Callable[[Any], Any]:
    """The worker, if this machine has what it takes."""
    machine = socket.gethostname()
    try:
        wanted: Setup = pickle.loads(setup)
    except (ImportError, AttributeError) as error:
        raise ReversiError(
            f"machine {machine!r} cannot run jobs ({error}): expected the same installation as where the command runs"
        ) from None
    if wanted.build != build():
        raise ReversiError(
            f"machine {machine!r} has reversi-lab {build()}: expected {wanted.build}, as where the command runs; "
            f"with other code or other weights, results would differ"
        )
    places = unpacked(wanted.files)
    try:
        return wanted.make(*(relocated(argument, places) for argument in wanted.arguments))
    except ReversiError as error:
        raise ReversiError(f"machine {machine!r}: {error}") from None


# --- connecting -----------------------------------------------------------------------------------


def checked_address(address: str) -> str:
    """An address that could be one."""
    if address in (AUTO, LOCAL) or _ADDRESS.fullmatch(address):
        return address
    raise ReversiError(
        f"Ray address {quoted(address)}: expected HOST:PORT of the cluster's head, as in 10.0.0.1:6379, "
        f"{AUTO} for one that runs here or is started here, or {LOCAL} for one of its own"
    )


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # we report to nobody
    with extra_libraries():
        return importlib.import_module("ray")


def _connect(ray: Any, address: str) -> None:
    plugins.check_folder(Path.cwd())  # where Ray's workers look first
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    match = _ADDRESS.fullmatch(address)
    if match:
        host, port = match[1].strip("[]"), int(match[2])
        try:
            socket.create_connection((host, port), CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ReversiError(
                f"Ray cluster {address} does not answer ({reason}): expected HOST:PORT of a running head "
                f"(`ray start --head` prints it)"
            ) from None
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        ray.init(address=None if address == AUTO else address, include_dashboard=None if match else False, **how)
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ReversiError(
            f"Ray cluster {address} cannot be joined ({_lines(error)[0]}): expected this machine to be part of it "
            f"(`ray start --address={address}`), with the same versions of Ray and Python and, if it asks for one, its "
            f"token (RAY_AUTH_MODE=token, and `ray get-auth-token` on the head)"
        ) from error


def _lines(error: Exception) -> list[str]:
    """What an error says; its name if that is nothing."""
    return [*filter(None, map(str.strip, str(error).splitlines()))] or [type(error).__name__]
