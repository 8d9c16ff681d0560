"""Where services lead: Endpoints and EndpointSlices."""
