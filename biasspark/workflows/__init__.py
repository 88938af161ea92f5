"""One file per job, each top to bottom the way of the data: read, rank, compute, judge, publish, show."""
