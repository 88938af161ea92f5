"""Compare two dependent values of a metric, of two models or runs: variances, differences and verdicts."""
