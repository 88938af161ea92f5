"""Stage 1: lake table -> EXAMPLES, and the rejects counted by reason."""
