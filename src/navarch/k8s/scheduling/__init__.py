"""The group scheduling: import one of its versions."""
