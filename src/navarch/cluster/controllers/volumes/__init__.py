"""Controllers of volumes: binding, provisioning, resizing, reclaiming and protection."""
