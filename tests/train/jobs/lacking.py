"""Workers that cannot work, on a Ray cluster: what they say, as JSON in a file.

Arguments: the cluster's address, a folder with a module ``elsewhere``, the file.
"""

import json
import os
import sys
from pathlib import Path

from tests.train.jobs.workers import DeviceWorker, Options, Reader, Unwilling, Worker
from train.jobs import ray as on_ray


def said(pool, job):
    with pool:
        try:
            return list(pool.results(iter([job])))
        except (ValueError, RuntimeError) as error:
            return str(error)


def left_in_the_middle(pool):
    """Whether a job came back; those that are under way then are nobody's, and may end at that very moment."""
    with pool:
        return next(pool.results(iter(range(1000)))) is not None


def main(address, folder, out):
    sys.path.append(folder)
    import elsewhere

    found = {}
    with on_ray.RayCluster(address) as cluster:
        found["module"] = said(cluster.workers(elsewhere.Worker), 1)
        found["left"] = [left_in_the_middle(cluster.workers(Worker)) for _ in range(20)]
        found["refusal"] = said(cluster.workers(Unwilling), 1)
        found["failure"] = said(cluster.workers(Worker), "fail")
        found["death"] = said(cluster.workers(Worker), "die")
        [[_, mark]] = said(cluster.workers(Worker, folder), "die once")
        assert mark != os.getpid()
        for device in ("cuda", "any"):
            with cluster.workers(DeviceWorker, device=device) as pool:
                found[device] = sorted(set(pool.results(iter(range(20)))))
        os.chdir(folder)
        Path("a.txt").write_text("from here")
        [[_, text, spec]] = said(cluster.workers(Reader, Options(("x:weights=a.txt",))), 1)
        found["shipped"] = [text, spec]
        build_id, on_ray.build_id = on_ray.build_id, lambda: "0.0-another"
        found["build"] = said(cluster.workers(Worker), 1)
        on_ray.build_id = build_id
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
