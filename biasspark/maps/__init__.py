"""The further maps: like `biasspark.pipeline`, each joins stages, in the order in which data flow."""
