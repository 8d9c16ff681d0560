"""What Kubernetes refuses, in its own words. Objects have been normalized and defaulted."""
