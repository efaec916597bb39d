"""The journal: the proofs of what was pruned from the commit table, and what people decided."""
