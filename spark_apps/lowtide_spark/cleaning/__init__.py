"""Orphan cleanup, region watermarks and the prune bound, commit-table pruning."""
