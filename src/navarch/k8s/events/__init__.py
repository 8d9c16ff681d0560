"""The group events: import one of its versions."""
