"""History: the mark, holds, what is worth removing."""
