"""How long `drakit up` takes to start, to stop, and to start again. Run as `python -m benchmarks lifecycle`.

A process as people start it: a node with devices, data in a file. Wall time, from the signal to the end of the process.
"""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmarks.report import publish

ROUNDS = 3
RUNNING_PODS = 10
_PATIENCE = 120.0


class _Cluster:
    """One process of `drakit up`; `listening` says when it could be asked."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.began = time.perf_counter()
        command = [sys.executable, "-m", "drakit", "up", "--port", "0", "--data-dir", str(directory), "--no-dashboard"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = ""

    def listening(self) -> float:
        """Seconds from the command until it listens."""
        if self.process.stdout is None:
            raise AssertionError("its output is a pipe")
        line = self.process.stdout.readline()
        while line and "listening on" not in line:
            line = self.process.stdout.readline()
        self.address = line.split("listening on ")[1].split(",")[0]
        return time.perf_counter() - self.began

    def ask_to_stop(self) -> float:
        self.process.send_signal(signal.SIGTERM)
        return time.perf_counter()

    def ended(self, asked: float) -> float:
        """Seconds from the signal until the process is gone."""
        self.process.wait(_PATIENCE)
        return time.perf_counter() - asked

    def run_pods(self, count: int) -> None:
        pods = "/api/v1/namespaces/default/pods"
        for number in range(count):
            container = {"name": "c", "image": "none", "command": ["sleep", "3600"]}
            metadata = {"name": f"p{time.monotonic_ns()}-{number}"}
            self._call("POST", pods, {"metadata": metadata, "spec": {"containers": [container]}})
        end = time.perf_counter() + _PATIENCE
        while time.perf_counter() < end:
            found = self._call("GET", pods)["items"]
            if sum(each["status"].get("phase") == "Running" for each in found) >= count:
                return
            time.sleep(0.2)
        raise TimeoutError(f"{count} pods do not run")

    def _call(self, method: str, path: str, body: object = None) -> dict[str, list[dict[str, dict[str, str]]]]:
        pki = self.directory / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, context=context, timeout=_PATIENCE) as answer:
            found: dict[str, list[dict[str, dict[str, str]]]] = json.load(answer)
            return found


def _round(directory: Path) -> dict[str, float]:
    first = _Cluster(directory)
    times = {"start: the command until it listens": first.listening()}
    times["stop: SIGTERM until the end, idle"] = first.ended(first.ask_to_stop())
    second = _Cluster(directory)
    second.listening()
    second.run_pods(RUNNING_PODS)
    asked = second.ask_to_stop()
    # At once, while the other one has the file: it waits for the lock.
    third = _Cluster(directory)
    times[f"stop: SIGTERM until the end, {RUNNING_PODS} pods run"] = second.ended(asked)
    third.listening()
    times["restart: SIGTERM until the next one listens"] = time.perf_counter() - asked
    third.ended(third.ask_to_stop())
    return times


def main() -> None:
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as directory:
            rounds.append(_round(Path(directory)))
    rows = [
        (what, f"{min(each[what] for each in rounds):.2f} s", f"{max(each[what] for each in rounds):.2f} s")
        for what in rounds[0]
    ]
    publish("lifecycle", "`drakit up`: start, stop, start again", ("what", "best", "worst"), rows)
