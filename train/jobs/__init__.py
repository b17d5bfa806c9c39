"""Jobs spread over processes, or over the machines of a Ray cluster: the same results, whoever does them.

Ray is imported only when a cluster is asked for.
"""
