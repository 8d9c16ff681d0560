"""An operator that runs etcd clusters on Kubernetes, with CoreOS' API `etcd.database.coreos.com/v1beta2`."""
