"""Put two models of a published run side by side, identity by identity. The corpus is not read."""

import sys

from biasspark.command import run_command

if __name__ == "__main__":
    sys.exit(run_command("side-by-side"))
