"""Kubernetes' own end-to-end tests, built from source and run on the embedded cluster.

Run `python -m upstream --help`; docs/embedded-server.md says what came of it.
"""
