"""Webhooks that the server calls: the client, and the conversion of custom objects."""
