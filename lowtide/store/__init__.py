"""The store as Python alone sees it, through the Thrift gateway: small reads, and single-row writes with a check."""
