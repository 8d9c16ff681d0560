"""The operator can be loaded."""

from navarch import Operator


def test_operator_has_the_name_of_the_project(operator: Operator) -> None:
    """All modules below controllers and webhooks can be imported."""
    assert operator.name == "etcd-operator"
