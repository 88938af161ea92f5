"""Measure a corpus: rank every score once, and publish the bias metrics of every model, slice and identity."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("measure"))
