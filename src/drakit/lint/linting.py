"""From texts to a report: read, judge each object as a server would, then look at all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from drakit.api.text.problems import Malformed
from drakit.base.gates import FeatureGates
from drakit.lint.cluster import Cluster
from drakit.lint.consistency import check_extended_resources, check_pools, check_repeated
from drakit.lint.findings import Draft, Report, Severity, in_order
from drakit.lint.matching import check_requests, check_selectors
from drakit.lint.places import locate
from drakit.lint.subjects import Reading, Subject, read_subjects
from drakit.lint.verdicts import check_subject

_TOGETHER = (check_pools, check_extended_resources, check_selectors, check_requests)


def lint(texts: Mapping[str, str | bytes], *, gates: FeatureGates, now: datetime) -> Report:
    """Check texts by name. Pure: files are read by the caller; `now` stands in where the server would put the time."""
    readings: list[Reading] = []
    unread: list[str] = []
    for name, data in texts.items():
        try:
            readings.append(read_subjects(name, data, now))
        except Malformed as error:
            unread.append(str(error))
    subjects = [subject for reading in readings for subject in reading.subjects]
    drafts = [draft for reading in readings for draft in reading.drafts]
    sound = _judge(subjects, gates, drafts)
    drafts += check_repeated(subjects)
    cluster = Cluster(sound, gates)
    for check in _TOGETHER:
        drafts += check(cluster)
    contents = {reading.text.name: reading.text.content for reading in readings}
    findings = in_order(locate(drafts, contents), list(texts))
    return Report(findings, len(subjects), sum(reading.skipped for reading in readings), tuple(unread))


def _judge(subjects: list[Subject], gates: FeatureGates, drafts: list[Draft]) -> list[Subject]:
    """The subjects that a server would accept; what is wrong with the others goes to the drafts."""
    sound = []
    for subject in subjects:
        found = list(check_subject(subject, gates))
        drafts += found
        if not any(draft.finding.severity is Severity.ERROR for draft in found):
            sound.append(subject)
    return sound
