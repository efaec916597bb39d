"""What a run of a job is, may do, and tells."""
