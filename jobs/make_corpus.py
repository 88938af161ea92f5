"""Write a synthetic corpus as Parquet, the same rows for the same seed on any cluster."""

import sys

from biasspark.command import run_command

if __name__ == "__main__":
    sys.exit(run_command("make-corpus"))
