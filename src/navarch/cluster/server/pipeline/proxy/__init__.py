"""The subresource `proxy`: passes HTTP on to pods, services and nodes."""
