"""The endpoints of the verbs of a resource."""
