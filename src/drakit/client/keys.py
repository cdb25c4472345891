"""Objects by name: the key that caches, queues and workers pass around.

In:  a struct of a whole kind, or a document with its view.
Out: its metadata and its key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.partial import Partial
from drakit.base.structs import Model

Object = Model | Partial[Any]


class Key(NamedTuple):
    """`namespace` is empty for objects of the cluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @staticmethod
    def parse(text: str) -> Key:
        """Read `namespace/name` or `name`."""
        namespace, _, name = text.rpartition("/")
        return Key(namespace, name)


def metadata_of(obj: Any) -> ObjectMeta:
    """The metadata of a struct or of a document with its view."""
    metadata: ObjectMeta = obj.view.metadata if type(obj) is Partial else obj.metadata
    return metadata


def key_of(obj: Any) -> Key:
    metadata = metadata_of(obj)
    return Key(metadata.namespace, metadata.name)
