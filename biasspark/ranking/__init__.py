"""Stage 2: EXAMPLES -> U statistics, by sorted blocks or by windows."""
