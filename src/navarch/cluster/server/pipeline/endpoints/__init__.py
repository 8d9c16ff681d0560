"""What serves the verbs of a resource."""
