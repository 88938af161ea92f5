"""Two values of a metric that are not independent, of two models or nights: their variances, difference and verdict."""
