"""The public functions, for notebooks. They are imported from `biasspark` itself."""
