"""Every table and figure of the five sources, made by the public functions of biasspark: a module for each source.

Supports docs/papers.md: every value.
"""
