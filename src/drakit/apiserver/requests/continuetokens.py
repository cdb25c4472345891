"""Continue tokens of paged lists.

In:  the revision of a list and the last key that was sent.
Out: an opaque text; and back.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from drakit.apiserver.failures import bad_request

_VERSION = "meta.k8s.io/v1"


class Continue(msgspec.Struct, frozen=True):
    """`after` is relative to the prefix of the list. Revision -1 stands for the current one."""

    revision: int = msgspec.field(name="rv")
    start: str
    v: str = _VERSION

    @property
    def after(self) -> str:
        return self.start.removesuffix("\0")


def encode_continue(revision: int, after: str) -> str:
    """A token that goes on after the key `after`, relative to the prefix."""
    token = msgspec.json.encode(Continue(revision=revision, start=after + "\0"))
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def decode_continue(text: str) -> Continue:
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(data, type=Continue)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    if token.v != _VERSION:
        raise bad_request(f'invalid continue token: server does not recognize this encoded version "{token.v}"')
    if not -1 <= token.revision < 1 << 63:
        raise bad_request("invalid continue token: rv is no revision")
    if token.revision == 0 or not token.start:
        raise bad_request("invalid continue token: the token has no position (rv and start)")
    if ".." in token.after.split("/"):
        raise bad_request("invalid continue token: the start must not climb")  # out of the prefix of the list
    return token
