"""The group networking: import one of its versions."""
