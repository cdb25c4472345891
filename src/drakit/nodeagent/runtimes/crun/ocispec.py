"""The OCI runtime spec of a container: `config.json` of a bundle, with its devices applied.

In:  a ContainerConfig, its image, the CDI edits.
Out: a document that any OCI runtime takes.

The network is the node's. Cgroups are not named: the agent makes them, and the runtime is started within.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drakit.nodeagent.runtimes.cdi import CdiDeviceNode, CdiEdits
from drakit.nodeagent.runtimes.contract import BindMount, ContainerConfig, DeviceUnresolved, RuntimeRefusal
from drakit.nodeagent.runtimes.crun.images import LocalImage

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_USUAL = """CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT
            KILL AUDIT_WRITE"""
_PRIVILEGED = """SYS_ADMIN SYS_PTRACE SYS_RAWIO SYS_NICE SYS_RESOURCE SYS_TIME SYS_MODULE NET_ADMIN IPC_LOCK IPC_OWNER
                 LEASE"""
_MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/sys/firmware"]
_READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
_FROM_THE_NODE = ("/etc/resolv.conf", "/etc/hosts")


def oci_spec(
    config: ContainerConfig, image: LocalImage, edits: CdiEdits, *, hostname: str, target: int = 0
) -> dict[str, Any]:
    """`target` is a process whose pid namespace the container joins.

    Raises RuntimeRefusal when neither pod nor image has a command, or a user name cannot be read.
    """
    joined = {"pid": {"path": f"/proc/{target}/ns/pid"}} if target else {}
    return {
        "ociVersion": "1.0.2",
        "process": _process(config, image, edits, hostname),
        "root": {"path": "rootfs", "readonly": config.read_only_root},
        "hostname": hostname,
        "mounts": [*_system_mounts(), *_node_files(config), *map(_volume, config.mounts), *_device_mounts(edits)],
        "hooks": _hooks(edits),
        "linux": {
            # No network namespace: there is no CNI here, the pod uses the network of the node.
            "namespaces": [{"type": kind, **joined.get(kind, {})} for kind in ("pid", "mount", "uts", "ipc")],
            "devices": [_device(node) for node in edits.device_nodes],
            "maskedPaths": [] if config.privileged else _MASKED,
            "readonlyPaths": [] if config.privileged else _READ_ONLY,
        },
    }


def command_of(config: ContainerConfig, image: LocalImage) -> list[str]:
    """A command replaces the image's entry point and its arguments; arguments alone replace its arguments."""
    if config.command:
        return [*config.command, *config.args]
    argv = [*image.entrypoint, *(config.args or image.command)]
    if not argv:
        message = f'container "{config.name}": neither it nor its image "{config.image}" has a command'
        raise RuntimeRefusal(message, reason="CreateContainerConfigError")
    return argv


def _process(config: ContainerConfig, image: LocalImage, edits: CdiEdits, hostname: str) -> dict[str, Any]:
    env = {"PATH": _PATH, "HOSTNAME": hostname} | ({"TERM": "xterm"} if config.tty else {})
    # Later wins: defaults, then the image, then the pod, then the CDI devices.
    env |= dict(entry.partition("=")[::2] for entry in image.env)
    env |= dict(config.env) | edits.env
    return {
        "terminal": config.tty,
        "user": _user(config, image) | ({"additionalGids": edits.groups} if edits.groups else {}),
        "args": command_of(config, image),
        "env": [f"{name}={value}" for name, value in env.items()],
        "cwd": config.working_dir or image.working_dir or "/",
        "capabilities": _capabilities(config),
        "noNewPrivileges": False,
    }


def _capabilities(config: ContainerConfig) -> dict[str, list[str]]:
    words = _USUAL.split() + (_PRIVILEGED.split() if config.privileged else [])
    return {kind: [f"CAP_{word}" for word in words] for kind in ("bounding", "effective", "permitted")}


def _user(config: ContainerConfig, image: LocalImage) -> dict[str, int]:
    """The pod's user, or the image's: a number, or a name of the image's own /etc/passwd."""
    name, _, group = image.user.partition(":")
    uid, gid = _look_up(image.root / "etc/passwd", name) if name else (0, 0)
    if group:
        gid = _look_up(image.root / "etc/group", group)[0]
    if config.run_as_user is not None:
        uid = config.run_as_user
    return {"uid": uid, "gid": gid if config.run_as_group is None else config.run_as_group}


def _look_up(file: Path, name: str) -> tuple[int, int]:
    if name.isdigit():
        return int(name), 0
    try:
        for line in file.read_text().splitlines():
            fields = line.split(":")
            if fields[0] == name:
                return int(fields[2]), int(fields[3]) if file.name == "passwd" else 0
    except (OSError, ValueError, IndexError):
        pass
    raise RuntimeRefusal(f'the image\'s user "{name}" is not in its {file.name}', reason="CreateContainerConfigError")


def _system_mounts() -> list[dict[str, Any]]:
    return [
        _mount("proc", "/proc", "proc", ["nosuid", "noexec", "nodev"]),
        _mount("tmpfs", "/dev", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
        _mount("devpts", "/dev/pts", "devpts", ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
        _mount("shm", "/dev/shm", "tmpfs", ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),  # noqa: S108
        _mount("mqueue", "/dev/mqueue", "mqueue", ["nosuid", "noexec", "nodev"]),
        # Bound, as the network is the node's: a sysfs of its own belongs to a network of its own.
        _mount("/sys", "/sys", "bind", ["rbind", "nosuid", "noexec", "nodev", "ro"]),
    ]


def _node_files(config: ContainerConfig) -> list[dict[str, Any]]:
    """The pod uses the node's network, so it resolves names as the node does; unless it mounts its own there."""
    own = {mount.container_path for mount in config.mounts}
    paths = [path for path in _FROM_THE_NODE if Path(path).exists() and path not in own]
    return [_mount(os.path.realpath(path), path, "bind", ["bind", "ro"]) for path in paths]


def _volume(mount: BindMount) -> dict[str, Any]:
    propagation = {"HostToContainer": "rslave", "Bidirectional": "rshared"}.get(mount.propagation, "rprivate")
    options = ["rbind", propagation, "ro" if mount.read_only else "rw"]
    return _mount(mount.host_path, mount.container_path, "bind", options)


def _device_mounts(edits: CdiEdits) -> list[dict[str, Any]]:
    for mount in edits.mounts:
        if not Path(mount.host_path).exists():
            raise DeviceUnresolved(f"CDI mount {mount.container_path}: {mount.host_path} is not on this node")
    return [
        _mount(mount.host_path, mount.container_path, mount.type or "bind", list(mount.options) or ["rbind"])
        for mount in edits.mounts
    ]


def _mount(source: str, destination: str, kind: str, options: list[str]) -> dict[str, Any]:
    if kind == "bind" and not {"bind", "rbind"} & set(options):
        options = ["rbind", *options]
    return {"destination": destination, "type": kind, "source": source, "options": options}


def _hooks(edits: CdiEdits) -> Mapping[str, list[dict[str, Any]]]:
    stages: dict[str, list[dict[str, Any]]] = {}
    for hook in edits.hooks:
        entry: dict[str, Any] = {"path": hook.path, "args": list(hook.args or (hook.path,)), "env": list(hook.env)}
        stages.setdefault(hook.stage, []).append(entry | ({"timeout": hook.limit} if hook.limit else {}))
    return stages


def _device(node: CdiDeviceNode) -> dict[str, Any]:
    """Type and numbers come from the node's own device unless the spec file names them."""
    kind, major, minor = node.type, node.major, node.minor
    if not kind or (kind != "p" and not major):
        try:
            status = Path(node.host_path).stat()
        except OSError:
            raise DeviceUnresolved(f"CDI device node {node.path}: {node.host_path} is not on this node") from None
        kind, major, minor = _kind(status.st_mode, node), os.major(status.st_rdev), os.minor(status.st_rdev)
    entry: dict[str, Any] = {"path": node.path, "type": kind, "major": major, "minor": minor}
    entry["fileMode"] = 0o666 if node.file_mode is None else node.file_mode
    return entry | {name: value for name, value in (("uid", node.uid), ("gid", node.gid)) if value is not None}


def _kind(mode: int, node: CdiDeviceNode) -> str:
    for is_kind, kind in ((stat.S_ISCHR, "c"), (stat.S_ISBLK, "b"), (stat.S_ISFIFO, "p")):
        if is_kind(mode):
            return kind
    raise DeviceUnresolved(f"CDI device node {node.path}: {node.host_path} is no device")
