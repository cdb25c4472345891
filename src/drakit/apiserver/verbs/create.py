"""Create an object.

In:  a POST to a collection.
Out: the stored object; 409 when the name is taken.
"""

from __future__ import annotations

from drakit.apiserver.requests.options import write_options
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.write import check_place, read_sent, write_new


async def create(context: ServerContext, call: ApiCall) -> StoredObject:
    """Handle a POST."""
    options = write_options(call.request, "CreateOptions")
    sent, document = await context.beside(call.size, read_sent, context, call, options)
    check_place(call, document)
    return await write_new(context, call, document, options, sent=sent)
