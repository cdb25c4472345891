"""Results for people and for machines.

In:  the results of a run.
Out: rows of a table, a plain document for JSON and YAML, JUnit XML.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec

from drakit.conformance.verdicts import RuleResult, RuleVerdict

COLUMNS = ("rule", "verdict", "reason")
WIDE_COLUMNS = ("rule", "verdict", "seconds", "title", "reason", "why")
_UNPRINTABLE = {number: "\N{REPLACEMENT CHARACTER}" for number in range(32) if chr(number) not in "\t\n\r"}
"""Characters that no XML document may contain."""


def row(result: RuleResult) -> tuple[str, ...]:
    return result.rule, result.verdict, result.reason


def wide_row(result: RuleResult) -> tuple[str, ...]:
    return result.rule, result.verdict, f"{result.seconds:.1f}", result.title, result.reason, result.why


def counts(results: Sequence[RuleResult]) -> dict[str, int]:
    return {verdict: sum(each.verdict is verdict for each in results) for verdict in RuleVerdict}


def document(driver: str, results: Sequence[RuleResult]) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins({"driver": driver, "counts": counts(results), "results": results})
    return found


def junit(driver: str, results: Sequence[RuleResult]) -> bytes:
    """One test case per rule."""
    suite = ElementTree.Element(
        "testsuite",
        name="drakit conformance",
        tests=str(len(results)),
        failures=str(counts(results)[RuleVerdict.FAIL]),
        errors="0",
        skipped=str(counts(results)[RuleVerdict.SKIP]),
        time=f"{sum(each.seconds for each in results):.3f}",
    )
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", classname=driver or "driver", name=result.rule, time=f"{result.seconds:.3f}"
        )
        reason = result.reason.translate(_UNPRINTABLE)
        if result.verdict is RuleVerdict.FAIL:
            ElementTree.SubElement(case, "failure", message=reason).text = f"{result.title}. {result.why}"
        elif result.verdict is RuleVerdict.SKIP:
            ElementTree.SubElement(case, "skipped", message=reason)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"
