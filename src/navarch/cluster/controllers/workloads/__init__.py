"""What keeps pods running: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob."""
