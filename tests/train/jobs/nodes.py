"""A Ray cluster of two simulated machines in its own process, controlled by lines on standard input.

The first output line has the address and the process id of the head's raylet; every input line gets one line back.
``add`` starts the second machine, with a simulated GPU, and prints its raylet's process id. ``kill`` ends it without warning.
The end of the input stops the cluster.
"""

import sys

from ray.cluster_utils import Cluster


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = None
    print(cluster.address, raylet(cluster.head_node), flush=True)
    for line in sys.stdin:
        if line.strip() == "add":
            second = cluster.add_node(num_cpus=1, num_gpus=1)
            print(raylet(second), flush=True)
        elif line.strip() == "kill":
            cluster.remove_node(second, allow_graceful=False)
            print("killed", flush=True)
    cluster.shutdown()


def raylet(node) -> int:
    [process] = node.all_processes["raylet"]
    return process.process.pid


if __name__ == "__main__":
    main()
