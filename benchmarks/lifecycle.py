"""How long `drakit up` takes to start, to stop, and to start again. Run as `python -m benchmarks lifecycle`.

A process as people start it: a node with devices, data in a file. Wall time, from the signal to the end of the process,
and the CPU time that the process took meanwhile: on a machine that does other work the former says little.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import publish

ROUNDS = 3
RUNNING_PODS = 10
_PATIENCE = 120.0


class _Took(NamedTuple):
    wall: float
    cpu: float


class _Asked(NamedTuple):
    at: float
    cpu: float


class _Cluster:
    """One process of `drakit up`; `listening` says when it could be asked."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.began = time.perf_counter()
        command = [sys.executable, "-m", "drakit", "up", "--port", "0", "--data-dir", str(directory), "--no-dashboard"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = ""

    def listening(self) -> _Took:
        """From the command until it listens."""
        if self.process.stdout is None:
            raise AssertionError("its output is a pipe")
        line = self.process.stdout.readline()
        while line and "listening on" not in line:
            line = self.process.stdout.readline()
        self.address = line.split("listening on ")[1].split(",")[0]
        return _Took(time.perf_counter() - self.began, self._cpu())

    def ask_to_stop(self) -> _Asked:
        asked = _Asked(time.perf_counter(), self._cpu())
        self.process.send_signal(signal.SIGTERM)
        return asked

    def ended(self, asked: _Asked) -> _Took:
        """From the signal until the process is gone."""
        _, code, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(code)
        return _Took(time.perf_counter() - asked.at, used.ru_utime + used.ru_stime - asked.cpu)

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        # utime, stime, and those of children that have ended, as `wait4` counts them.
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

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


def _round(directory: Path) -> dict[str, _Took]:
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
    cpu = third.listening().cpu
    times["restart: SIGTERM until the next one listens"] = _Took(time.perf_counter() - asked.at, cpu)
    third.ended(third.ask_to_stop())
    return times


def main() -> None:
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as directory:
            rounds.append(_round(Path(directory)))
    rows = [_row(what, [each[what] for each in rounds]) for what in rounds[0]]
    publish("lifecycle", "`drakit up`: start, stop, start again", ("what", "best", "worst", "CPU time"), rows)


def _row(what: str, took: list[_Took]) -> tuple[str, ...]:
    best, worst = min(each.wall for each in took), max(each.wall for each in took)
    return what, f"{best:.2f} s", f"{worst:.2f} s", f"{min(each.cpu for each in took):.2f} s"
