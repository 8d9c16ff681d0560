"""HTTP that is passed on to pods, services and nodes: the subresource `proxy`."""
