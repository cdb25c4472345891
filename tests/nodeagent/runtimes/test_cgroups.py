"""Cgroups of both versions, in a directory that looks like the kernel's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from drakit.base.clock import FakeClock, RealClock
from drakit.nodeagent.runtimes.cgroups import NO_CGROUP, Cgroups, cgroup_name, weight
from drakit.nodeagent.runtimes.contract import ContainerLimits, LimitsRefused

LIMITS = ContainerLimits(cpu_shares=512, cpu_quota=50_000, memory_bytes=1 << 20, pids=100)


def version_one(base: Path) -> Path:
    for controller in ("cpu", "memory", "pids"):
        (base / controller).mkdir(parents=True)
    return base


def version_two(base: Path) -> Path:
    """Each level has the file that hands controllers down, as the kernel makes it."""
    (base / "drakit" / "node" / "pod1" / "c1").mkdir(parents=True)
    (base / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    for level in (base, base / "drakit", base / "drakit" / "node", base / "drakit" / "node" / "pod1"):
        (level / "cgroup.subtree_control").write_text("cpu")
    (base / "drakit" / "node" / "pod1" / "c1" / "memory.events").write_text("oom_kill 0\n")
    return base


def test_version_one_has_a_directory_per_controller(tmp_path: Path) -> None:
    cgroups = Cgroups("node", root=version_one(tmp_path))
    made = cgroups.make("pod1/c1", LIMITS)
    assert cgroups.version == 1
    settings = {
        "cpu/drakit/node/pod1/c1/cpu.shares": "512",
        "cpu/drakit/node/pod1/c1/cpu.cfs_quota_us": "50000",
        "cpu/drakit/node/pod1/c1/cpu.cfs_period_us": "100000",
        "memory/drakit/node/pod1/c1/memory.limit_in_bytes": "1048576",
        "pids/drakit/node/pod1/c1/pids.max": "100",
    }
    assert {name: (tmp_path / name).read_text() for name in settings} == settings
    assert made.procs == tuple(
        f"{tmp_path}/{controller}/drakit/node/pod1/c1/cgroup.procs" for controller in ("cpu", "memory", "pids")
    )


def test_version_two_has_one_directory_and_hands_controllers_down(tmp_path: Path) -> None:
    cgroups = Cgroups("node", root=version_two(tmp_path))
    made = cgroups.make("pod1/c1", LIMITS)
    leaf = tmp_path / "drakit" / "node" / "pod1" / "c1"
    assert cgroups.version == 2
    assert (leaf / "cpu.weight").read_text() == "20"
    assert (leaf / "cpu.max").read_text() == "50000 100000"
    assert (leaf / "memory.max").read_text() == "1048576"
    assert (tmp_path / "drakit" / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (made.procs, made.oom) == ((f"{leaf}/cgroup.procs",), (f"{leaf}/memory.events",))


def test_the_pods_own_limits_are_on_the_directory_above(tmp_path: Path) -> None:
    cgroups = Cgroups("node", root=version_one(tmp_path))
    cgroups.make("pod1/c1", ContainerLimits(), pod=ContainerLimits(memory_bytes=4096))
    assert (tmp_path / "memory/drakit/node/pod1/memory.limit_in_bytes").read_text() == "4096"
    assert not (tmp_path / "memory/drakit/node/pod1/c1/memory.limit_in_bytes").exists()
    with pytest.raises(LimitsRefused):
        Cgroups("node", root=tmp_path / "none").make("p/c", ContainerLimits(), pod=ContainerLimits(cpu_quota=1000))


def test_where_none_may_be_made_limits_are_refused_and_weights_left_out(tmp_path: Path) -> None:
    cgroups = Cgroups("node", root=tmp_path / "none")
    assert cgroups.version == 0
    with pytest.raises(LimitsRefused, match="limits cannot be held: no cgroup may be made"):
        cgroups.make("pod1/c1", LIMITS)
    assert cgroups.make("pod1/c1", ContainerLimits(cpu_shares=2, oom_score_adj=1000)) == NO_CGROUP


def test_removal_takes_the_pods_directory_with_its_last_container(tmp_path: Path) -> None:
    cgroups = Cgroups("node", root=version_one(tmp_path))
    for path in ("pod1/c1", "pod1/c2"):
        cgroups.make(path, ContainerLimits())
    asyncio.run(cgroups.remove("pod1/c1", RealClock()))
    assert (tmp_path / "cpu/drakit/node/pod1").exists()
    asyncio.run(cgroups.remove("pod1/c2", RealClock()))
    asyncio.run(cgroups.remove("pod1/c2", RealClock()))
    assert not (tmp_path / "cpu/drakit/node/pod1").exists()


def test_what_an_earlier_agent_left_is_swept_up_and_the_rest_kept(tmp_path: Path) -> None:
    cgroups = Cgroups("node", root=version_one(tmp_path))
    for path in ("pod1/c1", "pod2/c2"):
        cgroups.make(path, ContainerLimits())
    cgroups.sweep({"pod2/c2"})
    assert [path.name for path in (tmp_path / "memory/drakit/node").iterdir()] == ["pod2"]


def test_two_nodes_of_one_name_on_one_machine_leave_each_other_alone(tmp_path: Path) -> None:
    root = version_one(tmp_path / "cgroup")
    one, other = (Cgroups(cgroup_name("node-1", tmp_path / directory), root=root) for directory in ("a", "b"))
    made = one.make("pod1/c1", LIMITS)  # no process is in it yet: the container is just being started
    other.sweep(())
    asyncio.run(other.clear(RealClock()))
    other.leave()
    assert all(Path(each).parent.is_dir() for each in made.procs)


def test_a_directory_and_a_link_to_it_name_the_same_cgroup(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "directory")
    assert cgroup_name("node", tmp_path / "link") == cgroup_name("node", tmp_path / "directory")


def test_everything_goes_when_the_last_container_has_ended(tmp_path: Path) -> None:
    root = version_one(tmp_path / "cgroup")
    cgroups = Cgroups("node", root=root)
    for path in ("pod1/c1", "pod2/c2"):
        cgroups.make(path, ContainerLimits())
    asyncio.run(cgroups.clear(RealClock()))
    cgroups.leave()
    assert [list((root / each / "drakit").iterdir()) for each in ("cpu", "memory", "pids")] == [[], [], []]


def test_a_cgroup_that_is_in_use_for_a_moment_is_removed_after_it(tmp_path: Path) -> None:
    cgroups = Cgroups("node", root=version_one(tmp_path))
    cgroups.make("pod1/c1", ContainerLimits())
    busy = tmp_path / "cpu/drakit/node/pod1/c1/busy"
    busy.touch()

    async def scene() -> None:
        clock = FakeClock()
        removal = asyncio.create_task(cgroups.remove("pod1/c1", clock))
        await clock.run_for(0.5)
        assert not removal.done()
        busy.unlink()
        await clock.run_for(0.5)
        assert removal.done()

    asyncio.run(scene())
    assert not (tmp_path / "cpu/drakit/node/pod1").exists()


@pytest.mark.parametrize(("shares", "expected"), [(2, 1), (1024, 39), (262144, 10000), (0, 1)])
def test_shares_become_weights(shares: int, expected: int) -> None:
    assert weight(shares) == expected
