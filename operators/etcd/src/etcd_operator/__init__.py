"""Runs etcd on Kubernetes: `etcd.database.coreos.com/v1beta2`, the API that CoreOS gave to the world."""
