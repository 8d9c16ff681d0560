"""The group batch: import one of its versions."""
