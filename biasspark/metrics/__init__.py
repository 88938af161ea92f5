"""Stage 3: U statistics -> metric rows, one file per family; arithmetic on small tables."""
