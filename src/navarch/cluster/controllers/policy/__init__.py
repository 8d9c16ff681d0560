"""Limits on what may be disturbed and on what may be used: disruption budgets and resource quotas."""
