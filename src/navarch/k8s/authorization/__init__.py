"""The group authorization: import one of its versions."""
