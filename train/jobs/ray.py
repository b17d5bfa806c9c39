"""A Ray cluster as an executor: one task per job, repeated by Ray when its worker or its machine is lost.

Jobs and results are small and are part of the task's messages. The arguments of the workers, with the files that they name, are
put into the object store once; a worker process fetches them at its first job and keeps its worker for the next ones. Tasks
belong to the connection of this process: when it ends, in whatever way, Ray ends them.
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

from reversi_env import ReversiError, __version__, loading
from reversi_env.errors import extra_libraries, quoted
from train.jobs.processes import RETRIES, Device, JobOutcome, WorkerFactory, close, run_job, unwrap
from train.jobs.shipping import ShippedFile, build_id, collect_files, unpack, with_local_paths

#: ``auto``: the running cluster of RAY_ADDRESS or of this machine, or else a new one here; ``local``: always a new one here.
AUTO, LOCAL = "auto", "local"
#: Tasks in the queue per worker, so that none is idle.
TASKS_PER_WORKER = 2
#: Timeout of the connection to the head, and interval at which the size of the cluster is polled.
CONNECT_SECONDS, POLL_SECONDS = 5.0, 2.0
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[\w.-]+):(\d{1,5})")


class RayCluster:
    """The cluster at an *address*, HOST:PORT of its head, ``auto`` or ``local``; connected within its context.

    An existing connection of this process is used and stays open. *on_message* is called when the number of CPUs changes.
    """

    def __init__(self, address: str = AUTO, on_message: Callable[[str], None] = lambda message: None) -> None:
        self.address = checked_address(address)
        self._on_message = on_message
        self._ray = _ray()
        self._connected_here = False
        self._polled, self._last_cpus, self._last_gpus = -POLL_SECONDS, 0, 0

    def __enter__(self) -> RayCluster:
        if not self._ray.is_initialized():
            _connect(self._ray, self.address)
            self._connected_here = True
        if not self.cpus():
            self.__exit__()
            raise ReversiError(f"Ray cluster {self.address} has no CPUs: expected at least one worker node")
        return self

    def __exit__(self, *_: object) -> None:
        if self._connected_here:
            self._ray.shutdown()
            self._connected_here = False

    def cpus(self) -> int:
        """Return the number of CPUs of all machines, at most `POLL_SECONDS` old; a change is reported."""
        if monotonic() - self._polled >= POLL_SECONDS:
            before, self._polled = self._last_cpus, monotonic()
            resources = self._ray.cluster_resources()
            self._last_cpus, self._last_gpus = (int(resources.get(kind, 0)) for kind in ("CPU", "GPU"))
            if before not in (0, self._last_cpus):
                self._on_message(f"CPUs of the Ray cluster: {self._last_cpus} now, {before} before")
        return self._last_cpus

    def gpus(self) -> int:
        """Return the number of GPUs of all machines, at most `POLL_SECONDS` old."""
        self.cpus()
        return self._last_gpus

    def workers(self, make: WorkerFactory, *arguments: Any, cpus: int = 1, device: Device = "cpu") -> RayWorkers:
        if device == "cuda" and not self.gpus():
            raise ReversiError(f"device cuda: expected a machine with a GPU in the Ray cluster {self.address}")
        largest = max(int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"])
        if cpus > largest:  # Ray would wait without end
            raise ReversiError(f"{cpus} threads per worker: expected at most {largest}, as the largest machine has")
        slots: dict[str, Callable[[], int]] = {}
        if device != "cpu":
            slots["cuda"] = self.gpus
        if device != "cuda":
            slots["cpu"] = lambda: self.cpus() // cpus
        return RayWorkers(self._ray, slots, Setup(make, arguments, collect_files(arguments), build_id()), cpus)


@dataclass(frozen=True)
class Setup:
    """The call that makes a worker, the files that its arguments name, and the required build of the package."""

    make: WorkerFactory
    arguments: tuple[Any, ...]
    files: tuple[ShippedFile, ...]
    build_id: str


class RayWorkers:
    """The tasks of one pool; *slots* has the devices, and for each a function that counts its workers.

    Tasks are not cancelled, since ``ray.cancel`` aborts the calling process if the task ends at that moment (Ray 2.60).
    """

    def __init__(self, ray: Any, slots: dict[str, Callable[[], int]], setup: Setup, cpus_each: int) -> None:
        self._ray, self._slots = ray, slots
        self._name = uuid.uuid4().hex
        self._setup = ray.put(pickle.dumps(setup))  # as bytes, so that an error in unpickling is part of the outcome
        # A task with a GPU reserves no CPU, or it would wait for those that tasks without one occupy.
        resources = {"cpu": {"num_cpus": cpus_each}, "cuda": {"num_cpus": 0, "num_gpus": 1}}
        task = ray.remote(do_job)
        self._tasks = {
            device: task.options(max_retries=RETRIES, name="reversi job", **resources[device]) for device in slots
        }
        self._pending: dict[Any, str] = {}  # tasks and their devices

    @property
    def size(self) -> int:
        """Number of jobs that run at the same time; it changes with the machines."""
        return max(1, sum(count() for count in self._slots.values()))

    def results(self, jobs: Iterator[Any]) -> Iterator[Any]:
        """Yield the results of all *jobs* in any order; the next job is taken when a worker will soon be free."""
        while True:
            while (device := self._free_device()) and (job := next(jobs, None)) is not None:
                self._pending[self._tasks[device].remote(f"{self._name}-{device}", [self._setup], job)] = device
            if not self._pending:
                return
            ready, _ = self._ray.wait([*self._pending], timeout=POLL_SECONDS)
            if ready:  # all that have ended by now
                ready, _ = self._ray.wait([*self._pending], num_returns=len(self._pending), timeout=0)
            for task in ready:
                del self._pending[task]
                yield unwrap(self._outcome(task))

    def _free_device(self) -> str | None:
        """Return a device whose queue is not full, if any. The last device has a queue even without machines."""
        queued = [*self._pending.values()]
        for device, count in self._slots.items():
            min_workers = device == [*self._slots][-1]
            if queued.count(device) < TASKS_PER_WORKER * max(min_workers, count()):
                return device
        return None

    def __enter__(self) -> RayWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pending.clear()

    def _outcome(self, task: Any) -> JobOutcome:
        errors = self._ray.exceptions
        try:
            return self._ray.get(task)
        except errors.RayTaskError as error:  # there was no worker, since errors of jobs are outcomes
            raise ReversiError(
                f"a machine of the cluster cannot run jobs ({_lines(error)[-1]}): expected the package, "
                f"reversi-lab {__version__} with its extra 'cluster', on every machine"
            ) from None
        except errors.RayError as error:
            raise ReversiError(
                f"a job was lost with its worker {RETRIES + 1} times ({type(error).__name__}: {_lines(error)[0]}): "
                f"expected a job that does not crash its workers"
            ) from None


# --- in a worker ----------------------------------------------------------------------------------

#: The pool of this process, and its worker.
_current: tuple[str, Callable[[Any], Any]] | None = None


def job_device() -> str:
    """Return the device of the task that runs in this process."""
    return "cuda" if _ray().get_gpu_ids() else "cpu"


def do_job(pool: str, setup: list[Any], job: Any) -> JobOutcome:
    """Run a job of a pool, as a Ray task. The list keeps Ray from fetching the setup for every job."""

    def worker() -> Callable[[Any], Any]:
        global _current
        if _current is None or _current[0] != pool:
            previous, _current = _current, None
            close(previous and previous[1])
            _current = pool, _make_worker(_ray().get(setup[0]))
        return _current[1]

    return run_job(worker, job)


def _make_worker(setup: bytes) -> Callable[[Any], Any]:
    """Return the worker, or raise if this machine has a different installation."""
    machine = socket.gethostname()
    try:
        required: Setup = pickle.loads(setup)
    except (ImportError, AttributeError) as error:
        raise ReversiError(
            f"machine {machine!r} cannot run jobs ({error}): expected the same installation as where the command runs"
        ) from None
    if required.build_id != build_id():
        raise ReversiError(
            f"machine {machine!r} has reversi-lab {build_id()}: expected {required.build_id}, as where the command runs; "
            f"with other code or other weights, results would differ"
        )
    places = unpack(required.files)
    try:
        return required.make(*(with_local_paths(argument, places) for argument in required.arguments))
    except ReversiError as error:
        raise ReversiError(f"machine {machine!r}: {error}") from None


def checked_address(address: str) -> str:
    """Return the address, or raise if its form is wrong."""
    if address in (AUTO, LOCAL) or _ADDRESS.fullmatch(address):
        return address
    raise ReversiError(
        f"Ray address {quoted(address)}: expected HOST:PORT of the cluster's head, as in 10.0.0.1:6379, "
        f"{AUTO} for a running or new cluster here, or {LOCAL} for a new one"
    )


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with extra_libraries():
        return importlib.import_module("ray")


def _connect(ray: Any, address: str) -> None:
    loading.check_folder(Path.cwd())  # the first folder from which Ray's workers import
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
        ray.init(
            address=None if address == AUTO else address,
            include_dashboard=None if match else False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=True,
        )
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ReversiError(
            f"Ray cluster {address} cannot be joined ({_lines(error)[0]}): expected this machine to be part of it "
            f"(`ray start --address={address}`), with the same versions of Ray and Python and, if it asks for one, its "
            f"token (RAY_AUTH_MODE=token, and `ray get-auth-token` on the head)"
        ) from error


def _lines(error: Exception) -> list[str]:
    """Return the lines of an error's message, or the name of its class."""
    return [*filter(None, map(str.strip, str(error).splitlines()))] or [type(error).__name__]
