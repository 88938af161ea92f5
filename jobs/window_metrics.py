"""Measure a window of published runs by merging their kept rankings. The corpus is not read."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("window"))
