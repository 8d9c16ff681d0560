"""The group meta: import one of its versions."""
