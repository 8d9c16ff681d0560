"""Nodes that fall silent: what is said of them, and what becomes of their pods."""
