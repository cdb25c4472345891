"""OpenAPI v3 and v2: what the API looks like, for `kubectl explain` and for clients that check before they send.

In:  the registry of kinds and their schemas.
Out: a document per group and version, as data (`document`) or as bytes with their hash (`encoded`), and the `index`;
     one v2 document of everything (`swagger`), also in protobuf.
"""

from drakit.apiserver.openapi.documents import describe, document, encoded, index
from drakit.apiserver.openapi.swagger import swagger
from drakit.apiserver.openapi.swaggerprotobuf import encode_swagger

__all__ = ["describe", "document", "encode_swagger", "encoded", "index", "swagger"]
