"""Simulations, and their results in `results/`, which the documentation quotes: each names the page."""
