"""Windows of runs: the sketch that a run keeps of its ranking, and how sketches merge."""
