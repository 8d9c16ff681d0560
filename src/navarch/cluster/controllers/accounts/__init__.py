"""What every namespace has for its pods: an account, and the certificate of the API server."""
