"""Accept a published night despite its gate, so that later nights are compared with it. Only the ledger grows."""

import sys

from biasspark.command import run_command

if __name__ == "__main__":
    sys.exit(run_command("accept"))
