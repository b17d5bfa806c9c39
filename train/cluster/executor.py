"""What a job is, and who does it: processes of this machine (`train.cluster.pool`), or a Ray cluster (`train.cluster.on_ray`).

A job must be idempotent: its result depends on the job and on what its worker was made of, not on who does it, when, or how often.
That is why a job whose worker dies is simply given to another, and why the results do not depend on the executor.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from reversi_env import ReversiError

Result = TypeVar("Result")
#: Makes a worker: a callable from a job to its result. A method ``close``, if it has one, ends it.
Make = Callable[..., Callable[[Any], Any]]
#: ("result", what came out), ("refusal", a `ReversiError`'s words) or ("failure", a traceback).
Answer = tuple[str, Any]
#: A job is given to another worker so often before it is taken to be what kills them.
RETRIES = 3


class WorkerPool(Protocol):
    """Workers that are all made alike."""

    @property
    def size(self) -> int:
        """Jobs that are done at the same time, as far as is known now."""
        ...

    def results(self, jobs: Iterator[Any]) -> Iterator[Any]:
        """The results of all *jobs*, as they come; a job is asked for when there is somebody to do it."""
        ...


class Executor(Protocol):
    """Has pools of workers."""

    def workers(self, make: Make, *arguments: Any, cpus: int = 1) -> AbstractContextManager[WorkerPool]:
        """Workers ``make(*arguments)`` that use so many CPUs each; they end with the context, or with the executor's."""
        ...


def in_order(results: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Numbered results in the order of their numbers, from 0 on; those that come too early wait.

    >>> list(in_order([(2, "c"), (0, "a"), (1, "b")]))
    ['a', 'b', 'c']
    """
    waiting: dict[int, Result] = {}
    number = 0
    for place, result in results:
        waiting[place] = result
        while number in waiting:
            yield waiting.pop(number)
            number += 1


# --- both ends of the wire ------------------------------------------------------------------------


def answer(worker: Callable[[], Callable[[Any], Any]], job: Any) -> Answer:
    """What a worker, made at the first job, says to one: never an exception, which might not travel."""
    try:
        return "result", worker()(job)
    except ReversiError as error:
        return "refusal", str(error)
    except Exception:
        return "failure", traceback.format_exc()


def opened(said: Answer) -> Any:
    """The result in an answer; what was raised there is raised here."""
    kind, content = said
    if kind == "refusal":
        raise ReversiError(content)
    if kind == "failure":
        raise RuntimeError(f"a worker failed:\n{content}")
    return content


def close(worker: Any) -> None:
    """End a worker that has something to end."""
    if hasattr(worker, "close"):
        worker.close()
