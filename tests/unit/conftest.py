"""Settings of the unit tests: pure rules, no store, no Spark."""

from hypothesis import settings

# No deadline: a busy machine is no failure. No database: a run leaves nothing behind.
settings.register_profile("lowtide", deadline=None, database=None, max_examples=150)
settings.load_profile("lowtide")
