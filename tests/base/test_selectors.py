"""Label, field and node selectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.base import fieldselectors, labels, nodeselectors
from drakit.base.errors import UsageError
from drakit.base.labels import LabelSelector, LabelSelectorRequirement, Requirement, _Index, _KeyRules
from drakit.base.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

Labels = dict[str, str]
LABELS = {"app": "web", "tier": "2", "empty": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app", True),
        ("!app", False),
        ("app=web", True),
        ("app==web,tier=2", True),
        ("app != web", False),
        ("missing!=x", True),
        ("app in (web, db)", True),
        ("app notin (web)", False),
        ("missing notin (x)", True),
        ("tier>1", True),
        ("tier<2", False),
        ("app>1", False),
        ("empty=", True),
        ("empty in ()", True),
        ("empty in (,x)", True),
        ("in in (x)", False),
    ],
)
def test_label_query(text: str, expected: bool) -> None:
    assert labels.parse(text).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,", "found '', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a key", "unable to parse requirement: found 'key', expected: in, notin, =, ==, !=, gt, lt"),
        ("a lt 3", "unable to parse requirement: found 'lt', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a>x", "for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (x,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a/b/c=d", 'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key'),
        ("a=-", "a valid label must be an empty string"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
    ],
)
def test_a_bad_label_query_says_where(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        labels.parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("space", ["\xa0", "\x0b", "\u2003", "\x85"])
def test_nothing_after_an_odd_space_is_passed_over(space: str) -> None:
    with pytest.raises(UsageError, match="a valid label must be an empty string"):
        labels.parse(f"app=web{space},tier=3")


words = st.from_regex(r"[a-z]([a-z0-9.]{0,5}[a-z0-9])?", fullmatch=True)
requirements = st.one_of(
    st.builds(lambda k, v: f"{k}={v}", words, words),
    st.builds(lambda k, v: f"{k} notin ({','.join(sorted(set(v)))})", words, st.lists(words, min_size=1, max_size=3)),
    words,
    words.map(lambda k: f"!{k}"),
    st.builds(lambda k, sign, v: f"{k}{sign}{v}", words, st.sampled_from(["<", ">", "!=", "=="]), st.integers(0, 99)),
)


@given(st.lists(requirements, max_size=4))
def test_a_label_query_prints_as_what_it_reads(parts: list[str]) -> None:
    selector = labels.parse(",".join(parts))
    assert labels.parse(str(selector)) == selector
    assert sorted(str(selector).split(",")) == sorted(",".join(parts).split(","))


def test_a_label_selector_struct_means_the_same_as_its_query() -> None:
    selector = LabelSelector(
        match_labels={"app": "web"},
        match_expressions=(
            LabelSelectorRequirement(key="tier", operator="In", values=("1", "2")),
            LabelSelectorRequirement(key="old", operator="DoesNotExist"),
        ),
    )
    assert labels.from_struct(selector).matches(LABELS)
    assert not labels.from_struct(selector).matches({**LABELS, "old": "yes"})
    assert labels.from_struct(LabelSelector()) == labels.EVERYTHING
    with pytest.raises(UsageError, match='"Near" is not a valid label selector operator'):
        labels.from_struct(LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),)))


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (("a", "In"), "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"),
        (("a", "Exists", "x"), 'values: Invalid value: ["x"]: values set must be empty for exists and does not exist'),
        (("a b", "Exists"), 'key: Invalid value: "a b": name part must consist of'),
        (("a", "In", "x", "-"), 'values[1][a]: Invalid value: "-": a valid label must be an empty string'),
    ],
)
def test_a_label_selector_struct_that_can_never_match_is_refused(requirement: tuple[str, ...], message: str) -> None:
    key, operator, *values = requirement
    expression = LabelSelectorRequirement(key=key, operator=operator, values=tuple(values))
    with pytest.raises(UsageError) as caught:
        labels.from_struct(LabelSelector(match_expressions=(expression,)))
    assert str(caught.value).startswith(message)


def test_labels_of_a_struct_that_can_never_match_are_refused() -> None:
    with pytest.raises(UsageError, match="key: Invalid value"):
        labels.from_struct(LabelSelector(match_labels={"a b": "c"}))


def test_a_label_selector_struct_prints_in_the_order_of_its_keys() -> None:
    expression = LabelSelectorRequirement(key="app", operator="Exists")
    assert str(labels.from_struct(LabelSelector(match_labels={"tier": "1"}, match_expressions=(expression,)))) == (
        "app,tier=1"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("spec.nodeName=a", True),
        ("spec.nodeName==a,status.phase!=Failed", True),
        ("spec.nodeName!=a", False),
        ("missing=", True),
        (r"odd=x\,y\=z\\", True),
    ],
)
def test_field_query(text: str, expected: bool) -> None:
    fields = {"spec.nodeName": "a", "status.phase": "Running", "odd": "x,y=z\\"}
    assert fieldselectors.parse(text).matches(fields) is expected


@pytest.mark.parametrize("text", ["a", "a=b=c", r"a=\x", "a=b\\"])
def test_a_bad_field_query_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        fieldselectors.parse(text)


@given(st.text(max_size=20))
def test_any_value_can_be_escaped(value: str) -> None:
    selector = fieldselectors.FieldSelector((fieldselectors.Term("f", value),))
    assert fieldselectors.parse(str(selector)) == selector
    assert selector.required_value("f") == value


def node_term(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator=operator, values=values),))


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (node_term("zone", "In", "a", "b"), True),
        (node_term("zone", "NotIn", "a"), False),
        (node_term("missing", "NotIn", "a"), True),
        (node_term("zone", "Exists"), True),
        (node_term("missing", "DoesNotExist"), True),
        (node_term("cores", "Gt", "7"), True),
        (node_term("cores", "Lt", "8"), False),
        (node_term("zone", "Gt", "1"), False),
        (node_term("cores", "Gt", "x"), False),
        (node_term("cores", "Gt", "1", "2"), False),
        (node_term("missing", "Gt", "1"), False),
        (node_term("zone", "Near", "a"), False),
        (node_term("missing", "NotIn"), False),
        (node_term("zone", "Exists", "a"), False),
        (node_term("missing", "DoesNotExist", "a"), False),
        (NodeSelectorTerm(), False),
    ],
)
def test_node_selector_operators(term: NodeSelectorTerm, expected: bool) -> None:
    selector = NodeSelector(node_selector_terms=(term,))
    assert nodeselectors.matches(selector, name="node-1", labels={"zone": "a", "cores": "8"}) is expected


def test_node_selector_terms_are_alternatives_and_none_match_nothing() -> None:
    by_name = NodeSelectorTerm(
        match_fields=(NodeSelectorRequirement(key="metadata.name", operator="In", values=("node-1",)),)
    )
    selector = NodeSelector(node_selector_terms=(node_term("zone", "In", "z"), by_name))
    assert nodeselectors.matches(selector, name="node-1", labels={})
    assert not nodeselectors.matches(selector, name="node-2", labels={})
    assert not nodeselectors.matches(NodeSelector(), name="node-1", labels={})


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("metadata.name", "NotIn", ("node-2",), True),
        ("metadata.name", "NotIn", ("node-1",), False),
        ("metadata.name", "In", ("node-1", "node-2"), False),
        ("metadata.name", "Exists", ("node-1",), False),
        ("metadata.uid", "In", ("node-1",), False),
    ],
)
def test_only_the_name_is_a_node_field(key: str, operator: str, values: tuple[str, ...], expected: bool) -> None:
    term = NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key=key, operator=operator, values=values),))
    assert nodeselectors.matches_term(term, name="node-1", labels={}) is expected


@pytest.mark.parametrize("text", ["", "+", "1.5", "٣", "9223372036854775808", "1" * 5000, " 1"])
def test_texts_that_are_no_64_bit_integers(text: str) -> None:
    assert nodeselectors.integer(text) is None


_KEYS = st.sampled_from(["a", "b", "c", "d"])
_VALUES = st.sampled_from(["", "1", "2", "3", "9", "x", "-4"])
_REQUIREMENTS = st.builds(
    Requirement, key=_KEYS, operator=st.sampled_from(["in", "notin", "=", "==", "!=", "gt", "lt", "exists", "!"]),
    values=st.lists(_VALUES, min_size=1, max_size=3).map(tuple),
)  # fmt: skip


@given(st.lists(_REQUIREMENTS, max_size=12), st.dictionaries(_KEYS, _VALUES))
def test_many_label_requirements_match_as_each_of_them_does(requirements: list[Requirement], found: Labels) -> None:
    assert _Index(requirements).matches(found) is all(each.matches(found) for each in requirements)


@given(
    st.lists(st.builds(fieldselectors.Term, _KEYS, _VALUES, st.booleans()), min_size=1, max_size=5),
    st.dictionaries(_KEYS, _VALUES),
)
def test_many_field_terms_match_as_each_of_them_does(terms: list[fieldselectors.Term], found: Labels) -> None:
    many = fieldselectors.FieldSelector(tuple(terms) * 20)
    assert many.matches(found) is all(term.matches(found) for term in terms)


def test_requirements_that_refuse_are_looked_up_by_the_labels_of_an_object() -> None:
    """However long the selector is: an object with two labels takes two looks."""
    looks: list[str] = []

    class Counted(dict[str, _KeyRules]):
        def __contains__(self, key: object) -> bool:
            looks.append(str(key))
            return super().__contains__(key)

    for text in ("a notin (" + ",".join(f"v{n}" for n in range(5000)) + ")", ",".join(f"!k{n}" for n in range(5000))):
        index = labels.parse(text)._index
        assert index is not None
        index._rules = Counted(index._rules)
        assert index.matches({"a": "x", "b": "y"})
    assert looks == ["a", "b"] * 2
