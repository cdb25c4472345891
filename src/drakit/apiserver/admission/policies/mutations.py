"""A compiled mutating policy: its conditions, and one patch per mutation.

In:  the values of a request; the object as it is.
Out: the object as the mutation wants it; a Failure with the reason if it has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.admission.criteria.evaluation import Conditions, compile_variables
from drakit.apiserver.admission.criteria.expressions import BUDGET, Compiled, Declared, Evaluation, Failure
from drakit.apiserver.admission.criteria.patchtypes import (
    JSON_PATCHES,
    OBJECT,
    NotPlain,
    misplaced,
    plain_value,
    typed_parts,
)
from drakit.apiserver.admission.criteria.registrations import MutatingPolicy, Mutation
from drakit.apiserver.failures import ApiError
from drakit.apiserver.patching.atoms import ATOMIC, Atom, ListAtom, MapAtom, atom_of
from drakit.apiserver.patching.comparing import form_of, problems_of
from drakit.apiserver.patching.jsonpatches import OperationFailed, PatchTestFailed, apply_operations
from drakit.apiserver.patching.merging import merge
from drakit.cel import Value

APPLY_CONFIGURATION = "ApplyConfiguration"
JSON_PATCH = "JSONPatch"


class CompiledMutations:
    """A mutating policy with its expressions. They are compiled when the policy is read, not when a request comes."""

    def __init__(self, policy: MutatingPolicy) -> None:
        self.name = policy.metadata.name
        self.spec = policy.spec
        params = policy.spec.param_kind is not None
        self.conditions = Conditions(policy.spec.match_conditions, policy.spec.failure_policy, params=params)
        variables, declared = compile_variables(policy.spec.variables, params=params)
        self.patches = [Patch(each, variables, declared, params=params) for each in policy.spec.mutations]


class Patch:
    """One mutation. Each has a budget of its own, and computes the variables anew: the object may have changed."""

    def __init__(
        self, mutation: Mutation, variables: list[tuple[str, Compiled]], declared: Declared, *, params: bool
    ) -> None:
        self._variables = variables
        self._applies = mutation.patch_type == APPLY_CONFIGURATION
        given = mutation.apply_configuration if self._applies else mutation.json_patch
        wanted = (OBJECT,) if self._applies else (JSON_PATCHES,)
        text = given.expression.strip() if given else ""
        self._expression = Compiled.of(text, wanted, declared=declared, params=params, patches=True)

    def patched(self, before: Plain, values: Mapping[str, Value], *, quick: bool) -> Plain:
        """The changed object; `before` itself if a `test` of a JSON patch does not hold."""
        value = Evaluation(values, BUDGET, self._variables, quick=quick).value(self._expression)
        return _merged(before, value) if self._applies else _operated(before, value)


def _merged(before: Plain, configuration: Value) -> Plain:
    applied = {**_plain_object(configuration), "apiVersion": before["apiVersion"], "kind": before["kind"]}
    atom = atom_of(before["apiVersion"], before["kind"])
    problems = [*typed_parts(configuration, ""), *problems_of(atom, applied)]
    if problems := [*problems, *((path, "may not be null") for path in _nulls(applied, ""))]:
        words = ", ".join(f"{path}: {why}" for path, why in problems)
        raise Failure(f"error applying patch: failed to convert patch object to typed object: {words}")
    if whole := list(_atomic_parts(atom, applied, "")):
        what = f"may not mutate atomic arrays, maps or structs: {', '.join(whole)}"
        raise Failure(f"error applying patch: invalid ApplyConfiguration: {what}")
    merged: Plain = merge(atom, before, applied)
    return merged


def _plain_object(value: Value) -> Any:
    if faults := list(misplaced(value, value.type_name)):
        raise Failure("type mismatch: " + "\n".join(faults))
    try:
        return plain_value(value)
    except NotPlain as error:
        raise Failure(f"invalid return type: {error}") from None


def _nulls(value: Any, path: str) -> Iterator[str]:
    """Paths of nulls. A mutation can set fields; only a JSON patch removes them."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _nulls(each, f"{path}.{name}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _nulls(each, f"{path}[{index}]")


def _atomic_parts(atom: Atom, value: Any, path: str) -> Iterator[str]:
    """Paths of parts that can only be replaced as a whole: an apply would drop what others have put there."""
    form = form_of(atom, value)
    if isinstance(form, MapAtom) and isinstance(value, dict):
        if form.atomic:
            yield path
        for name, each in value.items():
            if name in form.fields:
                yield from _atomic_parts(form.at(name), each, f"{path}.{name}")
    elif isinstance(form, ListAtom) and isinstance(value, list):
        if form.type == ATOMIC:
            yield path
        for index, each in enumerate(value):
            yield from _atomic_parts(form.element, each, f"{path}[{index}]")


def _operated(before: Plain, operations: Value) -> Plain:
    try:
        return apply_operations(before, [_operation(each) for each in operations])
    except PatchTestFailed:
        return before
    except OperationFailed as failed:
        raise Failure(f"JSON Patch: {failed.why}") from None
    except ApiError as error:
        raise Failure(f"JSON Patch: {error.status.message}") from None


def _operation(patch: Mapping[str, Value]) -> Plain:
    found: Plain = {"op": patch.get("op", ""), "path": patch.get("path", "")}
    if patch.get("from"):
        found["from"] = patch["from"]
    if "value" in patch:
        value = patch["value"]
        faults = list(misplaced(value, value.type_name)) if hasattr(value, "type_name") else []
        if faults:
            raise Failure("type mismatch: " + "\n".join(faults))
        try:
            found["value"] = plain_value(value)
        except NotPlain as error:
            raise Failure(f"JSON Patch: the value of {found['path']} cannot be written as JSON: {error}") from None
    return found
