"""Authentication: finds the user of a request by client certificate or bearer token."""
