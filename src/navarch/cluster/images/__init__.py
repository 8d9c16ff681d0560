"""Programs that stand in for container images when a machine has none: memcached. Nodes run them as files, none is imported."""
