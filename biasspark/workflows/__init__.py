"""One file per job. Each follows the data from top to bottom: read, rank, compute, judge, publish, show."""
