"""Controllers of policies: disruption budgets, resource quotas and the status of admission policies."""
