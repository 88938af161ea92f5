"""Show that pinned AUC moves with the class balance: drop part of one cell of one identity, many times over."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("pinned-skew"))
