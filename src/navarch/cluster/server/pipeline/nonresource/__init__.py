"""The paths that are no resource (nonResourceURLs): discovery, OpenAPI, version, health, metrics."""
