"""Two values of a metric that are not independent, of two models or runs: their variances, difference and verdict."""
