"""Resumable jobs: run folders, logs, checkpoints, provenance; and executors in processes or on a Ray cluster."""
