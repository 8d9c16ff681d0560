"""What Kubernetes runs beside its API server: each file adds one controller to the operator that `builtin.py` makes."""
