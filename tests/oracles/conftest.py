"""Nothing here is a test. These scripts run in processes of their own, which say what simulates a GPU."""

collect_ignore = ["cuda_games.py", "cuda_solver.py", "cuda_trees.py"]
