"""The roles in config/rbac grant what the operator uses, and no more: `make permissions`."""

from navarch.testing import permission_tests

test_permissions = permission_tests()
