"""A Ray cluster of two machines on this one, in a process of its own that does as it is told on its standard input.

It begins with a line, the address and the process id of the head's raylet, and answers every line with one: ``add`` starts
the second machine, with a GPU as far as Ray knows, and gives its raylet's process id, ``kill`` ends it without a word of farewell.
The end of the input ends the cluster.
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
