"""Stage 4: attributions of rows -> where a model loses its AUC, by trees, slices and pairs."""
