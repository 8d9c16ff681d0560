"""Volumes, claims and the kinds of `storage.k8s.io`."""
