"""Compare models with a baseline by every metric of the suite, and publish significant differences."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("compare"))
