"""History GC: the versions that no read point needs any more, their removal, and the mark that tells how far."""
