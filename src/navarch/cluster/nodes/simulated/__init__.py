"""Nodes whose pods are data: each walks through declared stages of life, by the clock that was handed over."""
