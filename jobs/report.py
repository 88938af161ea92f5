"""Write the report of a published night: one HTML file that needs nothing else; the corpus is not read."""

import sys

from biasspark.command import run_command

if __name__ == "__main__":
    sys.exit(run_command("report"))
