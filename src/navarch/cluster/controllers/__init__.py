"""The built-in controllers and the scheduler of Kubernetes; `manager` runs them."""
