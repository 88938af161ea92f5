"""The gate: rules on a run or on a comparison of models, the evidence for each, and the outcome."""
