"""Jobs spread over processes, or over the machines of a Ray cluster: the same results, whoever does them.

Ray is imported only when a cluster is asked for.
"""

from __future__ import annotations

from train.cluster.executor import Executor, WorkerPool, in_order
from train.cluster.pool import Processes

__all__ = ["Executor", "Processes", "WorkerPool", "in_order"]
