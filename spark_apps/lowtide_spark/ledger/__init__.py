"""The ledger: repair of transfers, balances, and the check of all of its books."""
