"""Simulations, and their results in `results/`. Each module names the page that quotes it."""
