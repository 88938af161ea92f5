"""Accept a published run despite its gate, so that later runs are compared with it. Adds one row to the ledger."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("accept"))
