"""Write the report of a published run. The corpus is not read."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("report"))
