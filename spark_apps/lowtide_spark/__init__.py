"""The Spark side of Lowtide: reading, deciding, acting."""
