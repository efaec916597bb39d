"""For the tests of all folders."""

pytest_plugins = ["needs"]
