"""The group apps: import one of its versions."""
