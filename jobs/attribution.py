"""Attribute the AUC of every model to rows, segments, groups and pairs, and publish which of them cost it most."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("attribute"))
