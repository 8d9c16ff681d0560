"""Deployments, ReplicaSets, StatefulSets, DaemonSets, ControllerRevisions and ReplicationControllers."""
