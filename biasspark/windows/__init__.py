"""Windows of runs: the sketch that each run keeps of its ranking, and how sketches merge."""
