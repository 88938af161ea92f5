"""Expressions of Spark SQL that several stages share."""
