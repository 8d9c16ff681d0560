"""The group apiextensions: import one of its versions."""
