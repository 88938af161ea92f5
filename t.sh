cd /tmp/wt_tst; export PYTHONPATH=/tmp/wt_tst; . scripts/env.sh >/dev/null 2>&1
exec .venv/bin/python -m pytest -q -m "not slow" -p no:cacheprovider "$@"
