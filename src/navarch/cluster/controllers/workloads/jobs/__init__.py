"""Job: pods that run to completion."""
