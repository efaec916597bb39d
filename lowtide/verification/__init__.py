"""What the verifier computes without a store, by code of its own. Pure."""
