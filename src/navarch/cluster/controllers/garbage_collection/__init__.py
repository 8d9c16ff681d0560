"""Who belongs to whom: garbage collection, and the end of namespaces."""
