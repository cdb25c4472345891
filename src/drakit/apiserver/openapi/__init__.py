"""OpenAPI v3: what the API looks like, for `kubectl explain` and for clients that check before they send.

In:  the registry of kinds and their schemas.
Out: a document per group and version, as data (`document`) or as bytes with their hash (`encoded`), and the `index`.
"""

from drakit.apiserver.openapi.documents import describe, document, encoded, index

__all__ = ["describe", "document", "encoded", "index"]
