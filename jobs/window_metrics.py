"""Measure a window of published runs by merging their kept rankings. The corpus is not read."""

import sys

from biasspark.command import run_command

if __name__ == "__main__":
    sys.exit(run_command("window"))
