"""Run what is quick at once, and what is not where nobody waits for it.

In:  work that can be tried quickly, and raises TooCostly when that does not do.
Out: its result.

Expressions of administrators meet objects of users: whoever sends a large object to a policy with loops could hold up
everybody else. So what takes long is done by one thread, one after the other, beside the requests that do not.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from drakit.apiserver.admission.criteria.expressions import TooCostly

T_co = TypeVar("T_co", covariant=True)
_SLOW = ThreadPoolExecutor(max_workers=1, thread_name_prefix="drakit-expressions")


class Work(Protocol[T_co]):
    def __call__(self, *, quick: bool) -> T_co:
        """Raise TooCostly if that cannot be done quickly."""
        ...


async def weigh(work: Work[T_co]) -> T_co:
    try:
        return work(quick=True)
    except TooCostly:
        return await asyncio.get_running_loop().run_in_executor(_SLOW, partial(work, quick=False))
