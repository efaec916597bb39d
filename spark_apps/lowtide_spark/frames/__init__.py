"""The store as DataFrames: tables, commit table, journal, sideline, inventory."""
