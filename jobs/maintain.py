"""Maintain the tables: remove superseded and failed runs, and compact files. Readers see no difference."""

import sys

from biasspark.command import run_command

if __name__ == "__main__":
    sys.exit(run_command("maintain"))
