"""What the server says about itself: discovery, OpenAPI, version, health, metrics."""
