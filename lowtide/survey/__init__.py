"""The survey of a store: what it found, how it is estimated, what the owner should know, and how it is shown."""
