"""CEL expressions of webhooks and policies, and the AdmissionRequest that they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.matching import Shown
from navarch.cluster.server.pipeline.authentication.users import service_account_groups, service_account_name, user_info
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.wire.budget import cel_budget, current_budget
from navarch.cluster.server.wire.request import Json, RequestInfo, User
from navarch.schema import cel

if TYPE_CHECKING:
    from navarch.schema.cel.library.authorization import CheckAttributes

_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def review_of(attributes: Attributes, shown: Shown, uid: str) -> Json:
    """The AdmissionReview that a webhook gets."""
    request = described(attributes, shown.resource)
    request = {"uid": uid, **request, "object": shown.value, "oldObject": shown.old}
    request["dryRun"] = request.pop("dryRun")
    request["options"] = request.pop("options")
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def described(attributes: Attributes, resource: ResourceType) -> Json:
    """Returns the AdmissionRequest without its objects, for a request converted to `resource`."""
    subresource = attributes.subresource
    said: Json = {
        "kind": _kind(attributes, resource),
        "resource": _resource(resource),
        "subResource": subresource,
        "requestKind": _kind(attributes, attributes.resource),
        "requestResource": _resource(attributes.resource),
        "requestSubResource": subresource,
        "name": attributes.name,
        "namespace": _namespace(attributes),
        "operation": attributes.operation,
    }
    said = {key: value for key, value in said.items() if value}
    said["userInfo"] = user_info(attributes.user)
    said["dryRun"] = attributes.dry_run
    said["options"] = _options(attributes)
    return said


def _kind(attributes: Attributes, resource: ResourceType) -> Json:
    """Returns the kind of the request's object: a subresource has its own kind."""
    value = attributes.value or attributes.old
    if attributes.subresource and value and value.get("kind") not in {None, resource.kind}:
        group, _, version = str(value.get("apiVersion", "")).rpartition("/")
        return {"group": group, "version": version, "kind": value["kind"]}
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: ResourceType) -> Json:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _namespace(attributes: Attributes) -> str:
    """A namespace is said to be in itself."""
    if attributes.resource.plural == "namespaces" and not attributes.resource.group:
        return attributes.name
    return attributes.namespace


def _options(attributes: Attributes) -> Json | None:
    """A patch is an update, or a creation, by then; that it was forced is nobody's business."""
    kind = _OPTIONS.get(attributes.operation)
    if kind is None:
        return None
    rest = {key: value for key, value in attributes.options.items() if key not in {"kind", "apiVersion", "force"}}
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **rest}


def variables_of(attributes: Attributes, shown: Shown, authorizer: RbacAuthorizer) -> dict[str, object]:
    """The values of `REQUEST_VARIABLES`."""
    return {
        "object": shown.value,
        "oldObject": shown.old,
        "request": described(attributes, shown.resource),
        "authorizer": _authorizer(attributes, authorizer),
    }


def _authorizer(attributes: Attributes, authorizer: RbacAuthorizer) -> object:
    """Returns CEL's `authorizer`, for the user of the request or for a ServiceAccount that the expression names."""
    from navarch.schema.cel.library import authorization  # noqa: PLC0415 - most servers have no expressions

    def ask(question: CheckAttributes) -> authorization.CheckResult:
        user = attributes.user if question.account is None else _service_account(*question.account)
        decision = current_budget().in_loop(lambda: authorizer.allows(user, _info(question)))
        return authorization.CheckResult(decision.allowed, decision.reason)

    resource = attributes.resource
    request = authorization.CheckAttributes(
        group=resource.group,
        resource=resource.plural,
        subresource=attributes.subresource,
        namespace=attributes.namespace,
        name=attributes.name,
    )
    return authorization.AuthorizerValue(ask, request)


def _service_account(namespace: str, name: str) -> User:
    return User(service_account_name(namespace, name), groups=service_account_groups(namespace))


def _info(question: CheckAttributes) -> RequestInfo:
    return RequestInfo(
        question.verb,
        question.path,
        group=question.group,
        namespace=question.namespace,
        resource=question.resource,
        subresource=question.subresource,
        name=question.name,
    )


class Expression:
    """An expression that may turn out not to compile: evaluating it is an error then."""

    __slots__ = ("_fault", "_program", "text")

    def __init__(
        self,
        text: str,
        environment: Mapping[str, cel.CelType],
        result: cel.CelType | None = None,
        *,
        builds: bool = False,
    ) -> None:
        self.text = text
        self._fault = ""
        self._program: cel.Program | None = None
        try:
            self._program = cel.compile(text, environment, builds=builds)
        except cel.CelError as error:
            self._fault = f"compilation error: {error.told}"
            return
        if result is not None and self._program.result_type not in {result, cel.DYN}:
            self._fault = f"must evaluate to {result} but got {self._program.result_type}"
            self._program = None

    @property
    def result_type(self) -> cel.CelType:
        """Of what type its value is, as far as that is known."""
        return cel.DYN if self._program is None else self._program.result_type

    def evaluate(self, variables: Mapping[str, object], budget: cel.CostBudget) -> object:
        """The value, at the cost of the budget. Raises `CelEvaluationError` and `CelBudgetError`."""
        if self._program is None:
            raise cel.CelEvaluationError(self._fault)
        return budget.evaluate(self._program, variables)

    def error_text(self, error: cel.CelEvaluationError) -> str:
        """Returns the text of its failure."""
        return f"expression '{self.text}' resulted in error: {error}"


class ConditionResult(NamedTuple):
    """Something that must be true: whether it is, or why nobody knows."""

    holds: bool
    error: str = ""


def judged(expression: Expression, variables: Mapping[str, object], budget: cel.CostBudget) -> ConditionResult:
    """Evaluates the expression to a boolean. Raises `CelBudgetError`."""
    try:
        value = expression.evaluate(variables, budget)
    except cel.CelEvaluationError as error:
        return ConditionResult(holds=False, error=expression.error_text(error))
    if not isinstance(value, bool):
        return ConditionResult(holds=False, error=f"expression '{expression.text}' did not give a boolean")
    return ConditionResult(holds=value)


class ConditionsVerdict(NamedTuple):
    """The result of all conditions, with an error if one failed."""

    holds: bool
    error: str = ""


class Conditions:
    """`matchConditions`: all must be true; one that is false decides, whatever errors the others have."""

    __slots__ = ("_expressions",)

    def __init__(self, documents: Iterable[Json], environment: Mapping[str, cel.CelType]) -> None:
        self._expressions = tuple(Expression(each["expression"], environment, cel.BOOL) for each in documents)

    def __bool__(self) -> bool:
        """Tells whether there are any conditions."""
        return bool(self._expressions)

    def verdict(self, variables: Mapping[str, object]) -> ConditionsVerdict:
        """Evaluates the conditions for a request."""
        if not self._expressions:
            return ConditionsVerdict(holds=True)
        try:
            with cel_budget(cel.MATCH_CONDITIONS_COST_BUDGET) as budget:
                return self._verdict(variables, budget)
        except cel.CelBudgetError as error:
            return ConditionsVerdict(holds=False, error=str(error))

    def _verdict(self, variables: Mapping[str, object], budget: cel.CostBudget) -> ConditionsVerdict:
        errors: list[str] = []
        for expression in self._expressions:
            condition = judged(expression, variables, budget)
            if condition.error:
                errors.append(condition.error)
            elif not condition.holds:
                return ConditionsVerdict(holds=False)
        if not errors:
            return ConditionsVerdict(holds=True)
        return ConditionsVerdict(holds=False, error=errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
