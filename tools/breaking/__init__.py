"""What ``tools/break-rules`` is made of."""
