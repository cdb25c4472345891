"""The service account of the pod that we run in.

In:  the environment that every pod has, and the files that are mounted into it.
Out: an Access whose token is read again as it is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from drakit.base.clock import Clock, RealClock
from drakit.base.errors import UsageError
from drakit.base.inputfiles import read_settings
from drakit.client.access.credentials import Files
from drakit.client.access.endpoint import Access, Trust

MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster(environment: Mapping[str, str], *, mounted: Path = MOUNTED, clock: Clock | None = None) -> Access:
    """How a pod reaches its server. Raise UsageError outside of one."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise UsageError("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    token = mounted / "token"
    if not token.is_file():
        raise UsageError(f"{token}: the pod has no service account token")
    namespace = mounted / "namespace"
    try:
        trust = Trust(ca=read_settings(mounted / "ca.crt"))
    except OSError as error:
        raise UsageError(f"{mounted / 'ca.crt'}: {error.strerror}") from None
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        trust=trust,
        credentials=Files(clock or RealClock(), token=token),
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
    )
