"""Controllers of workloads: Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job, CronJob."""
