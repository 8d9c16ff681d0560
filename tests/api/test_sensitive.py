"""What holds secrets is shown without them."""

from typing import Any

import pytest

from navarch.api import Dynamic, Model, ObjectMeta, Spec, encode
from navarch.errors import DefinitionError
from navarch.k8s.authentication.v1 import TokenRequestStatus, TokenReviewSpec
from navarch.k8s.core.v1 import Secret

APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "note": "kept"}
SECRET = Secret(
    metadata=ObjectMeta(name="a", annotations=APPLIED), data={"pass": b"hunter2"}, string_data={"word": "hunter2"}
)


class Login(Spec, sensitive=("password",)):
    user: str = "me"
    password: str | None = None


class Nested(Model):
    login: Login


def test_repr_of_a_secret_shows_its_keys_alone() -> None:
    """Neither the data nor what kubectl remembers of it."""
    assert repr(SECRET) == (
        "Secret(api_version='v1', kind='Secret', metadata=ObjectMeta(name='a', annotations="
        "{'kubectl.kubernetes.io/last-applied-configuration': '***', 'note': 'kept'}), data={'pass': '***'}, string_data={'word': '***'})"
    )
    assert SECRET.data == {"pass": b"hunter2"}
    assert SECRET.annotations == APPLIED


@pytest.mark.parametrize(
    "holder",
    [
        [SECRET],
        SECRET.copy(),
        Dynamic(apiVersion="v1", kind="Secret", data={"a": "hunter2"}, metadata={"annotations": APPLIED}),
        Dynamic(apiVersion="v1", kind="Secret", stringData={"a": "hunter2"}, metadata=None),
        Login(password="hunter2"),
        Nested(login=Login(password="hunter2")),
        type("Below", (Login,), {})(password="hunter2"),
        TokenRequestStatus(token="hunter2"),
        TokenReviewSpec(token="hunter2"),
        list(SECRET.__rich_repr__()),  # type: ignore[attr-defined]  # msgspec's own, for rich
    ],
)
def test_secret_is_hidden_wherever_it_is_held(holder: Any) -> None:
    """In lists, in other models, in objects without a class; and for those who print with rich."""
    assert "hunter2" not in repr(holder)
    assert "***" in repr(holder)


def test_what_is_hidden_is_still_sent() -> None:
    """Only the view is without it."""
    assert encode(Login(password="hunter2")) == b'{"user":"me","password":"hunter2"}'
    assert repr(Login()) == "Login(user='me')"


def test_other_objects_without_a_class_are_shown_as_they_are() -> None:
    """A dict."""
    assert repr(Dynamic(kind="Widget", data={"a": 1})) == "{'kind': 'Widget', 'data': {'a': 1}}"


def test_sensitive_field_that_is_none_is_refused() -> None:
    """A typo would show the secret."""
    with pytest.raises(DefinitionError, match="class Wrong: expected sensitive= to name its fields, got 'pasword'; it"):

        class Wrong(Model, sensitive=("pasword",)):
            password: str = ""

    with pytest.raises(DefinitionError, match=r"write sensitive=\('password',\)"):

        class Bare(Model, sensitive="password"):
            password: str = ""
