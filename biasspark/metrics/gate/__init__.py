"""The rules of the gate, on a night and on two models: evidence -> alerts."""
