"""Write any table of a published run as CSV that spreadsheets open safely. The corpus is not read."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("export"))
