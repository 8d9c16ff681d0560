"""The group certificates: import one of its versions."""
