"""Questions about single cells: why one is there, goes or went, and what was put aside; by the jobs' own rules."""
