"""Controllers of services: Endpoints and EndpointSlices."""
