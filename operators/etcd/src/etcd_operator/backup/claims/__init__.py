"""Backups on claims. The operator cannot mount one while it runs: a pod that lives no longer than it takes does.

The two know each other by certificates of an authority that is made for this one pod. The key of the operator's own never
leaves its process: a pod of one that has ended is of no use to anybody, and is deleted.
"""

from etcd_operator.backup.claims.opening import Claims, Visit, left_behind

__all__ = ["Claims", "Visit", "left_behind"]
