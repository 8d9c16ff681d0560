"""The garbage collector, and the deletion of namespaces."""
