"""From texts to a report: read, check each object as a server would, then look at all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from drakit.api.text.problems import Malformed
from drakit.base.gates import FeatureGates
from drakit.lint.cluster import Cluster
from drakit.lint.consistency import check_extended_resources, check_pools, check_repeated
from drakit.lint.extendedresources import check_amounts, check_implicit_names, check_two_providers
from drakit.lint.findings import Draft, Finding, Report, Severity, in_order, locate, refuse
from drakit.lint.nodeshares import check_shares
from drakit.lint.requests import check_requests, check_selectors
from drakit.lint.servererrors import check_manifest
from drakit.manifests import Manifest, ManifestText, parse_manifests

_TOGETHER = (
    check_pools,
    check_extended_resources,
    check_implicit_names,
    check_two_providers,
    check_selectors,
    check_requests,
    check_amounts,
    check_shares,
)


def lint(texts: Mapping[str, str | bytes], *, gates: FeatureGates, now: datetime) -> Report:
    """Check texts by name. Pure: files are read by the caller; `now` stands in where the server would put the time."""
    read: list[ManifestText] = []
    unread: list[str] = []
    for name, data in texts.items():
        try:
            read.append(parse_manifests(name, data, now=now))
        except Malformed as error:
            unread.append(str(error))
    # An object of which a part had to be left out is told as it is; rules would only say what follows from that.
    manifests = [each for text in read for each in text.manifests if not each.omitted]
    drafts: list[Draft] = []
    sound = _accepted(manifests, gates, drafts)
    drafts += check_repeated(manifests)
    cluster = Cluster(sound, gates)
    for check in _TOGETHER:
        drafts += check(cluster)
    refused = [finding for text in read for finding in _refused(text)]
    found = [*refused, *locate(drafts, {text.name: text.content for text in read})]
    return Report(in_order(found, list(texts)), len(manifests), sum(text.skipped for text in read), tuple(unread))


def _refused(text: ManifestText) -> list[Finding]:
    whole = {(each.index, each.prefix): each for each in text.manifests if not each.omitted}
    return [refuse(problem, whole.get((problem.document, problem.prefix))) for problem in text.problems]


def _accepted(manifests: list[Manifest], gates: FeatureGates, drafts: list[Draft]) -> list[Manifest]:
    """The objects that a server would accept; what is wrong with the others goes to the drafts."""
    sound = []
    for manifest in manifests:
        found = list(check_manifest(manifest, gates))
        drafts += found
        if not any(draft.finding.severity is Severity.ERROR for draft in found):
            sound.append(manifest)
    return sound
