"""A rule allows what it says, and the compiled rule says what the words say."""

from __future__ import annotations

from hypothesis import given

from drakit.api.objects.rbac import PolicyRule
from drakit.apiserver.auth.authorization import Attributes
from drakit.apiserver.auth.rbac.rules import compile_rule
from tests.apiserver.auth.matching import ALICE, questions, rules


def ask(verb: str, resource: str, *, group: str = "", subresource: str = "", name: str = "") -> Attributes:
    return Attributes(user=ALICE, verb=verb, group=group, resource=resource, subresource=subresource, name=name)


def allows(asked: Attributes, **rule: tuple[str, ...]) -> bool:
    return compile_rule(PolicyRule(**rule)).allows(asked)


def test_a_resource_does_not_stand_for_its_subresources() -> None:
    pods = {"verbs": ("get",), "api_groups": ("",), "resources": ("pods",)}
    assert allows(ask("get", "pods"), **pods)
    assert not allows(ask("get", "pods", subresource="status"), **pods)


def test_a_star_before_a_subresource_stands_for_every_resource() -> None:
    status = {"verbs": ("update",), "api_groups": ("*",), "resources": ("*/status",)}
    assert allows(ask("update", "pods", subresource="status"), **status)
    assert allows(ask("update", "resourceclaims", group="resource.k8s.io", subresource="status"), **status)
    assert not allows(ask("update", "pods"), **status)
    assert not allows(ask("update", "pods", subresource="binding"), **status)


def test_a_star_after_the_slash_means_itself_only() -> None:
    rule = {"verbs": ("get",), "api_groups": ("",), "resources": ("pods/*",)}
    assert not allows(ask("get", "pods", subresource="status"), **rule)


def test_the_core_group_is_not_every_group() -> None:
    assert not allows(
        ask("get", "resourceclaims", group="resource.k8s.io"), verbs=("*",), api_groups=("",), resources=("*",)
    )


def test_names_narrow_a_rule_to_requests_that_name_one() -> None:
    named = {"verbs": ("*",), "api_groups": ("",), "resources": ("secrets",), "resource_names": ("mine",)}
    assert allows(ask("get", "secrets", name="mine"), **named)
    assert not allows(ask("get", "secrets", name="yours"), **named)
    assert not allows(ask("list", "secrets"), **named)


def test_a_path_ends_in_a_star_or_is_meant_exactly() -> None:
    rule = {"verbs": ("get",), "non_resource_urls": ("/healthz", "/apis/*")}

    def path(text: str) -> Attributes:
        return Attributes(user=ALICE, verb="get", path=text)

    assert allows(path("/healthz"), **rule)
    assert allows(path("/apis/resource.k8s.io"), **rule)
    assert not allows(path("/healthz/store"), **rule)
    assert not allows(path("/apis"), **rule)


def test_rules_on_paths_say_nothing_about_resources() -> None:
    assert not allows(ask("get", "pods"), verbs=("*",), non_resource_urls=("*",))
    assert not allows(
        Attributes(user=ALICE, verb="get", path="/metrics"), verbs=("*",), api_groups=("*",), resources=("*",)
    )


# A twin that reads the documentation of RBAC word by word.


def naive(rule: PolicyRule, asked: Attributes) -> bool:
    if not any(verb in ("*", asked.verb) for verb in rule.verbs):
        return False
    if not asked.resource:
        return any(
            url in ("*", asked.path) or (url[-1:] == "*" and asked.path.startswith(url.rstrip("*")))
            for url in rule.non_resource_urls
        )
    if not any(group in ("*", asked.group) for group in rule.api_groups):
        return False
    whole = asked.resource + ("/" + asked.subresource if asked.subresource else "")
    wild = "*/" + asked.subresource if asked.subresource else whole
    if not any(resource in ("*", whole, wild) for resource in rule.resources):
        return False
    return not rule.resource_names or asked.name in rule.resource_names


@given(rules, questions)
def test_the_compiled_rule_agrees_with_the_words(rule: PolicyRule, asked: Attributes) -> None:
    assert compile_rule(rule).allows(asked) == naive(rule, asked)
