"""Stage 5: rows become tables that SQL can read, published all at once or not at all."""
