"""Compare models with a baseline by every metric of the suite, and publish what got significantly better or worse.

Rules of the gate that name the baseline are judged here; if one fails, the comparison is published and the exit code
is 5.
"""

import sys

from biasspark.command import run_command

if __name__ == "__main__":
    sys.exit(run_command("compare"))
