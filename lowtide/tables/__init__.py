"""Which tables are transactional, whose, and what their settings keep from a reader. Pure."""
