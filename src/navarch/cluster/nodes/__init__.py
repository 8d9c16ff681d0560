"""Nodes: kubelets that run the pods bound to them as processes, and simulated nodes whose pods are data."""
