from biasspark.command import run_command

if __name__ == "__main__":
    raise SystemExit(run_command("make-corpus"))
