"""`Operator`: controllers, election, health and metrics as one process."""
