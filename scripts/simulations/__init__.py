"""Simulations, and their results in `results/`, which the documentation quotes.

================================  ==============================================================================
result                            quoted in
================================  ==============================================================================
`interval_coverage.json`          the docstring of `biasspark/metrics/intervals.py`: the rule that chooses intervals
`comparison_coverage.json`        `docs/comparing.md`: intervals and tests of differences between models
`change_errors.json`              `docs/gate.md`: rules on changes of runs with the same ids
`attribution_of_nothing.json`     `docs/attribution.md`: false discoveries of trees, slices and pairs
================================  ==============================================================================
"""
