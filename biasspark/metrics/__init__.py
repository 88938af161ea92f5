"""Stage 3: U statistics -> metric rows, one file a family; arithmetic on small tables."""
