"""Values held against a schema: validated, defaulted, pruned as the API server does it."""
