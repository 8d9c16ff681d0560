"""What Kubernetes fills in where an object says nothing. Objects have been normalized: what is empty is not there."""
