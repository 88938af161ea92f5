"""``python -m biasspark``: the console command."""

import sys

from biasspark.command import main

if __name__ == "__main__":
    sys.exit(main())
