"""The public functions for notebooks. Import them from `biasspark`."""
