"""Write a synthetic corpus as Parquet, the same rows for the same seed on any cluster."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("make-corpus"))
