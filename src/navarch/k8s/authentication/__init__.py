"""The group authentication: import one of its versions."""
