"""What comes back: cells from a sideline, commit entries from the journal."""
