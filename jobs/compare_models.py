"""Compare models with a baseline by every metric of the suite, and publish significant differences."""

import sys

from biasspark.command import run_command

if __name__ == "__main__":
    sys.exit(run_command("compare"))
