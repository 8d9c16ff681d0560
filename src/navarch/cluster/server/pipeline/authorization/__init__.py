"""Authorization: RBAC, impersonation, escalation checks and access reviews."""
