"""Maintain the tables: remove superseded and failed runs, and compact files. Readers see no difference."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("maintain"))
