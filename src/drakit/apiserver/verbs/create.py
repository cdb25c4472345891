"""Create an object.

In:  a POST to a collection.
Out: the stored object; 409 when the name is taken.
"""

from __future__ import annotations

from drakit.apiserver.requests.bodies import read_body
from drakit.apiserver.requests.options import write_options
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.write import check_place, read_object, write_new


async def create(context: ServerContext, call: ApiCall) -> StoredObject:
    """Handle a POST."""
    options = write_options(call.request, "CreateOptions")
    sent = await context.beside(call.size, read_body, call.request)
    document = (await context.beside(call.size, read_object, context, call, sent, options)).document
    check_place(call, document)
    return await write_new(context, call, document, options, sent=sent)
