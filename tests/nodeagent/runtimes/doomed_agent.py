"""An agent that is killed: starts containers on the process runtime, says so, and waits for its end.

`python -m tests.nodeagent.runtimes.doomed_agent BASE SCRIPT…`: one container per script. It prints the container ids;
when BASE ends in `starting`, the first one only, right before its shim is started.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from drakit.nodeagent.runtimes.contract import SandboxConfig
from tests.nodeagent.runtimes.scene import POD, process_runtime, shell, start


async def main(base: Path, scripts: list[str]) -> None:
    async with process_runtime(base) as runtime:
        if base.name == "starting":
            sandbox = await runtime.run_sandbox(SandboxConfig(pod=POD, log_directory=str(base / "logs")))
            container = await runtime.create_container(sandbox, shell(scripts[0]))
            print(container, flush=True)
            await runtime.start_container(container)
        else:
            print(*[await start(runtime, base, shell(script)) for script in scripts], flush=True)
        await asyncio.sleep(1000)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
