"""Stage 6: published tables -> what people read."""
