"""What keeps pods running: Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job, CronJob."""
