"""The ledger: repair and balances."""
