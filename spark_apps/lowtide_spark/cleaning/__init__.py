"""Orphan cleanup, watermarks, pruning."""
