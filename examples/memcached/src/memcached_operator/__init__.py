"""The operator memcached-operator."""

from navarch import Operator

operator = Operator("memcached-operator", crds="verify")
