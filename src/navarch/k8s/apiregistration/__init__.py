"""The group apiregistration: import one of its versions."""
