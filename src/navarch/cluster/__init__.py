"""The embedded cluster: a Kubernetes API server, its controllers and its nodes in one process."""
