"""Doing the work of a home in this process: runs with their progress, workers, and repair."""
