"""The terminal: a console for texts of others, tables in which nothing is cut, and whom to ask."""
