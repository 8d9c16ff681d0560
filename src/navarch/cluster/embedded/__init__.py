"""The embedded cluster as one thing: server, storage, credentials, and ways to reach it."""
