"""The group node: import one of its versions."""
