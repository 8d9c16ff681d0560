"""The API server: Kubernetes' API as a function from requests to replies.

Objects are JSON values here. Nothing in this room imports the client or the runtime: a mistake on one side must not hide
the same mistake on the other.
"""
