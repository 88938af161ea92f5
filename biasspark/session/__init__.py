"""Sessions: the only package that starts a session, or uses features of only some kinds of sessions.

Other code takes a ``DataFrame`` and uses ``DataFrame.sparkSession``, so that it runs on classic Spark, on Spark Connect
and serverless clusters, and on the embedded engine.
"""

from __future__ import annotations

from biasspark.session.engines import (
    BYTES_AN_ATTRIBUTION,
    engine_of,
    engine_version,
    expression,
    find_session,
    is_connect,
    is_embedded,
    refuse_too_many,
    sees_files,
)
from biasspark.session.job_session import build_session, job_session, local
from biasspark.session.spark_jobs import (
    analyze,
    describe,
    kept,
    run_side_by_side,
    starting_workers,
)
