"""Whole stories of a cluster come out as their transcripts have them.

To accept what changed: `DRAKIT_UPDATE_TRANSCRIPTS=1 pytest tests/scenarios/test_transcripts.py`, then review the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drakit.testing import LocalCluster
from tests.scenarios.transcript import replay

STORIES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.dra_cluster(nodes=0)
@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_a_story_comes_out_as_it_is_written(story: Path, dra_cluster: LocalCluster) -> None:
    told = dra_cluster.run(replay(story.read_text(), dra_cluster.asynchronous))
    if os.environ.get("DRAKIT_UPDATE_TRANSCRIPTS"):
        story.write_text(told)
    assert told == story.read_text()


def test_there_is_a_story() -> None:
    assert STORIES
