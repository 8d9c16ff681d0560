"""The group rbac: import one of its versions."""
