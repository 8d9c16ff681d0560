"""What runs in pods: log, exec, attach and port-forward, between clients and nodes."""
