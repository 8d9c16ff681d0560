"""The group storage: import one of its versions."""
