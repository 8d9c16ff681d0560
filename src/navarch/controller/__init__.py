"""Controllers: the reconcile contract, what triggers it, what it can do, election, events."""
