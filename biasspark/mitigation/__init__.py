"""The mitigation experiment: classifiers trained with and without the comments that a plan adds (Mitigating)."""
