"""One program per library: `python -m peers.NAME list|apply`, with KUBECONFIG set."""
