"""The cells of tables, as `kubectl get` shows objects."""
