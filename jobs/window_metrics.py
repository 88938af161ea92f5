"""Measure a window of published nights by merging the rankings that they kept; the corpus is not read."""

import sys

from biasspark.command import run_command

if __name__ == "__main__":
    sys.exit(run_command("window"))
