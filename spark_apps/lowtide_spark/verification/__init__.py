"""The verifier and the gate, by code of their own."""
