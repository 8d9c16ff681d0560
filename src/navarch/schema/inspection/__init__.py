"""CustomResourceDefinitions looked at as the API server would, before they are sent."""
