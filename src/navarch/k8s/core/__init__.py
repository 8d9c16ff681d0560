"""The group core: import one of its versions."""
