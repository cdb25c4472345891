"""Scenes and objects for the tests of matching, here and elsewhere."""

from __future__ import annotations

from hypothesis import strategies as st

from drakit.api.exchange import User
from drakit.api.objects.rbac import PolicyRule
from drakit.apiserver.auth.authorization import Attributes

ALICE = User(name="alice")
VERBS = ("get", "list", "update", "*")
GROUPS = ("", "resource.k8s.io", "*")
RESOURCES = ("pods", "resourceclaims", "pods/status", "*/status", "resourceclaims/driver", "*/*", "*")
NAMES = ("a", "b", "")
PATHS = ("/healthz", "/healthz/*", "/apis/*", "/api*", "*", "/")


def several(values: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), max_size=3).map(tuple)


rules = st.builds(
    PolicyRule,
    verbs=several(VERBS),
    api_groups=several(GROUPS),
    resources=several(RESOURCES),
    resource_names=several(NAMES[:2]),
    non_resource_urls=several(PATHS),
)
questions = st.builds(
    Attributes,
    user=st.just(ALICE),
    verb=st.sampled_from(VERBS),
    group=st.sampled_from(GROUPS),
    resource=st.sampled_from(("pods", "resourceclaims", "*")),
    subresource=st.sampled_from(("", "status", "driver", "*")),
    name=st.sampled_from(NAMES),
) | st.builds(
    Attributes,
    user=st.just(ALICE),
    verb=st.sampled_from(VERBS),
    path=st.sampled_from(("/healthz", "/healthz/store", "/apis/x", "/api", "/apis", "/")),
)
