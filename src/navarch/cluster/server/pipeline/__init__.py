"""The way of a request: authentication, authorization, admission, and the endpoint that answers it."""
