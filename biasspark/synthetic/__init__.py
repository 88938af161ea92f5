"""Seeded corpora, generated on the executors, whose bias is known beforehand."""
