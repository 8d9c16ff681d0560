"""Checks CustomResourceDefinitions as the API server does, before they are sent."""
