"""The pods of one node: a worker for each pod runs its containers and reports its status."""
