"""Objects of any kind: the registry of types, storage, views, lists, watches, and the fields that a write changes."""
