"""Explanations as lines of text.

In:  an ObjectExplanation.
Out: lines that fit a terminal; names are cut to a few unless all are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drakit.explain.answers import FoldedNodes, GivenDevice, MissingDevice, ObjectExplanation, RequestFunnel

_FEW = 3


def explanation_lines(found: ObjectExplanation, *, wide: bool = False) -> Iterator[str]:
    yield found.verdict
    if found.message:
        yield f"The scheduler says: {found.message}"
    yield from _section("Devices", (_given(each) for each in found.devices))
    yield from _section("Nodes", (line for each in found.nodes for line in _nodes(each, wide=wide)))
    yield from _section("Requests", (line for each in found.requests for line in _request(each, wide=wide)))
    yield from _section("Held by others", _missing(found.missing, wide=wide))
    yield from _section("It would fit with", (f"- {each.text}" for each in found.suggestions))
    if found.hopeless:
        yield ""
        yield f"No change makes it fit: {found.hopeless}."
    yield from _section("Members", (f"{each.name}: {each.standing.value}" for each in found.members))


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    shown = list(lines)
    if shown:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in shown)


def _given(each: GivenDevice) -> str:
    amounts = ", ".join(f"{name}={amount}" for name, amount in each.consumed.items())
    extra = [part for part in (amounts, "admin access" if each.admin else "") if part]
    if each.conditions:
        extra.append(f"waits for {', '.join(each.conditions)}")
    more = f" [{'; '.join(extra)}]" if extra else ""
    return f"{each.claim}, request {each.request}: {each.device}{more}" + (f" ({each.why})" if each.why else "")


def _nodes(each: FoldedNodes, *, wide: bool) -> Iterator[str]:
    yield f"{len(each.nodes)} {each.reason} ({listed(each.nodes, wide=wide)})"
    yield from (f"  {line}" for line in each.detail)


def _request(each: RequestFunnel, *, wide: bool) -> Iterator[str]:
    wanted = "all" if each.wanted is None else each.wanted
    yield f"{each.claim}, request {each.request}: {wanted} of class {each.device_class} wanted"
    yield "  " + " → ".join(f"{stage.stage} {stage.left}" for stage in each.stages)
    for refused in each.refused:
        names = [name if wide else name.rpartition("/")[2] for name in refused.examples]
        more = ", …" if refused.count > len(names) else ""
        yield f"  {refused.count} lost at {refused.stage}: {refused.reason} ({', '.join(names)}{more})"


def _missing(found: Sequence[MissingDevice], *, wide: bool) -> Iterator[str]:
    """A line per claim, with what it holds."""
    claims: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    for each in found:
        claims.setdefault((each.namespace, each.claim, each.node, each.pods), []).append(each.device)
    for (namespace, claim, node, pods), devices in claims.items():
        users = f", used by {listed(pods, wide=wide)}" if pods else ""
        shown = devices if wide else [device.rpartition("/")[2] for device in devices]
        yield f"claim {namespace}/{claim} on {node}: {listed(shown, wide=wide)}{users}"


def listed(names: Sequence[str], *, wide: bool = False) -> str:
    shown = names if wide else names[:_FEW]
    return ", ".join(shown) + (f", … {len(names) - len(shown)} more" if len(shown) < len(names) else "")
