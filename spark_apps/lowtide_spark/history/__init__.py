"""History GC."""
