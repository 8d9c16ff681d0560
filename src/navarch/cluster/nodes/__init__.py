"""Nodes: what runs the pods that are bound to them, and says how they are."""
