"""The group autoscaling: import one of its versions."""
