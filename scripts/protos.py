"""Generate the Python code of the interfaces that drakit speaks over gRPC: `make protos`.

In:  the .proto files of a package: `<package>/protos/*.proto`.
Out: next to that folder `<name>_pb2.py` (messages), `<name>_pb2_grpc.py` (services) and a .pyi file of each. They are
     committed: who installs drakit needs no compiler. A test generates them again and compares.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGES = ("drakit/pluginapi", "drakit/store/etcd")
SOURCE = Path(__file__).parents[1] / "src"


def generate(package: str, target: Path) -> None:
    """Write the code of every .proto file of a package into the same package below `target`."""
    protos = SOURCE / package / "protos"
    programs = Path(sys.executable).parent
    # The virtual path puts the files into the package itself, so that the generated imports name it.
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={package}={protos}"),
            *(f"--plugin=protoc-gen-{name}={programs / f'protoc-gen-{name}'}" for name in ("mypy", "mypy_grpc")),
            *(f"--{kind}_out={target}" for kind in ("python", "grpc_python")),
            *(f"--{kind}_out=quiet:{target}" for kind in ("mypy", "mypy_grpc")),
            *(f"{package}/{path.name}" for path in sorted(protos.glob("*.proto"))),
        ],
        check=True,
    )


if __name__ == "__main__":
    for each in PACKAGES:
        generate(each, SOURCE)
