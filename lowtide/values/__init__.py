"""Bytes, numbers and spans, as every room takes them. No store, no configuration."""
