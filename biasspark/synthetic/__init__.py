"""Synthetic corpora with known bias, generated on the executors from a seed."""
