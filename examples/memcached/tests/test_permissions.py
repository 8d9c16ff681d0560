"""The roles in config/rbac grant what the operator does, and no more."""

from navarch.testing import permission_tests

test_permissions = permission_tests()
