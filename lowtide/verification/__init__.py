"""What the verifier computes without a store, by code of its own. Invariants V1 to V6 are text in docs/safety.md."""
