"""Many clusters at once in one process, from a cold start: whatever is made on first use is made by all of them."""

from __future__ import annotations

import subprocess
import sys

CLUSTERS = 12
PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from drakit.testing import local_cluster

MANIFEST = '''
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: a}]
  containers: [{name: main, image: train, resources: {claims: [{name: gpu}]}}]
'''

def run(_: int) -> str:
    with local_cluster() as cluster:
        cluster.apply(MANIFEST)
        return cluster.wait_for("a").status.phase

count = int(sys.argv[1])
with ThreadPoolExecutor(count) as pool:
    print(*pool.map(run, range(count)))
"""


def test_clusters_in_several_threads_start_at_the_same_moment_and_run_pods() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(CLUSTERS)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["Running"] * CLUSTERS), done.stderr[-2000:]
