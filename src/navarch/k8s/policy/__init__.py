"""The group policy: import one of its versions."""
