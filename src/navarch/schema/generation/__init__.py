"""From classes to CustomResourceDefinitions."""
