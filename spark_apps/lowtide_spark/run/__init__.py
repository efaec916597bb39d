"""What every job has in common: arguments, session, summary, exit code."""
