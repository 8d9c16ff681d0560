"""Validates, defaults and prunes values against a schema, as the API server does."""
