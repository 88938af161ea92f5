"""Put two models of a published run side by side, identity by identity. The corpus is not read."""

from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("side-by-side"))
