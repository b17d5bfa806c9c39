"""Workers that fail on a Ray cluster; their errors are written as JSON.

Arguments: the cluster's address, a folder with a module ``elsewhere``, the output file.
"""

import json
import os
import sys
from pathlib import Path

from tests.train.jobs.workers import DeviceWorker, Options, Reader, RefusingWorker, Worker
from train.jobs import ray as on_ray


def results_or_error(pool, job):
    with pool:
        try:
            return list(pool.results(iter([job])))
        except (ValueError, RuntimeError) as error:
            return str(error)


def closed_early(pool):
    """Return whether a job came back. The pool closes while other jobs are running, which may end at that moment."""
    with pool:
        return next(pool.results(iter(range(1000)))) is not None


def main(address, folder, out):
    sys.path.append(folder)
    import elsewhere

    outcomes = {}
    with on_ray.RayCluster(address) as cluster:
        outcomes["module"] = results_or_error(cluster.workers(elsewhere.Worker), 1)
        outcomes["closed"] = [closed_early(cluster.workers(Worker)) for _ in range(20)]
        outcomes["refusal"] = results_or_error(cluster.workers(RefusingWorker), 1)
        outcomes["failure"] = results_or_error(cluster.workers(Worker), "fail")
        outcomes["death"] = results_or_error(cluster.workers(Worker), "die")
        [[_, mark]] = results_or_error(cluster.workers(Worker, folder), "die once")
        assert mark != os.getpid()
        for device in ("cuda", "any"):
            with cluster.workers(DeviceWorker, device=device) as pool:
                outcomes[device] = sorted(set(pool.results(iter(range(20)))))
        os.chdir(folder)
        Path("a.txt").write_text("from here")
        [[_, text, spec]] = results_or_error(cluster.workers(Reader, Options(("x:weights=a.txt",))), 1)
        outcomes["shipped"] = [text, spec]
        build_id, on_ray.build_id = on_ray.build_id, lambda: "0.0-another"
        outcomes["build"] = results_or_error(cluster.workers(Worker), 1)
        on_ray.build_id = build_id
    Path(out).write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
