"""The group coordination: import one of its versions."""
