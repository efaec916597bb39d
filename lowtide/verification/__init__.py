"""What the verifier computes without a store, by code of its own. The invariants V1 to V6 are text in docs/safety.md."""
