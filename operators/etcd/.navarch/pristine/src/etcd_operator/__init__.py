"""The operator etcd-operator."""

from navarch import Operator

operator = Operator("etcd-operator", crds="verify")
