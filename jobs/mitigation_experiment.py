"""Train classifiers on an imbalanced corpus, mitigate the bias of one by a plan, and measure what that changes."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("mitigation"))
