"""What was cleaned where, what is to be read, and the marks that follow. Pure."""
