"""The group resource: import one of its versions."""
