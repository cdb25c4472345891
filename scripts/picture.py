"""Take the picture of `drakit top` that the README shows: `python scripts/picture.py KUBECONFIG docs/images/top.svg`.

In:  the kubeconfig of a cluster that runs.
Out: the screen as SVG, without the fonts that it would fetch.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from drakit.cli.commands.top.application import TopApplication
from drakit.cli.commands.top.feed import live_feed
from drakit.client import Client, load_kubeconfig
from drakit.client.transport.http import Http

_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
SIZE = (110, 34)


async def picture(kubeconfig: Path) -> str:
    access = load_kubeconfig([kubeconfig])
    async with Client(Http(access)) as client, live_feed(client, access.server) as feed:
        app = TopApplication(feed)
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            return _FONTS.sub("", app.export_screenshot(title="drakit top"))


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(asyncio.run(picture(Path(sys.argv[1]))))
