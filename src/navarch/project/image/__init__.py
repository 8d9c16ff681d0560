"""The image of an operator project: locked, built without a container engine, and described."""
