"""Put two models side by side, identity by identity, from the tables of a published night; the corpus is not read."""

import sys

from biasspark.command import run_command

if __name__ == "__main__":
    sys.exit(run_command("side-by-side"))
