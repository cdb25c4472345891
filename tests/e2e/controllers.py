"""Scenes and objects for the tests of controllers, here and elsewhere."""

from __future__ import annotations

import http.client


def show(url: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(url.rpartition("//")[2], timeout=20)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
