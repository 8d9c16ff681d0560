"""Small programs of our own, in the place of those that a machine may not have."""
