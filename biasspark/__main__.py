"""``python -m biasspark``: the console command."""

from biasspark.command import main

if __name__ == "__main__":
    raise SystemExit(main())
