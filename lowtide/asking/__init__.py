"""What is answered to who asks about single cells: why one is there, goes or went, and what was put aside. Pure."""
