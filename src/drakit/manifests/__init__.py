"""Manifests: files, directories, dumps and snapshots of a cluster to typed objects.

In:  paths, or texts by name: JSON or YAML, any number of documents, lists as `kubectl get -o yaml` writes them.
Out: objects with defaults, in the order of the files, in the namespace that kubectl would give them; and every problem
     with its file and line.
"""

from drakit.manifests.files import SUFFIXES, FileContents, read_files
from drakit.manifests.objects import Manifest, ManifestText, name_of
from drakit.manifests.positions import find_positions
from drakit.manifests.problems import BadManifests, ManifestProblem
from drakit.manifests.reader import Manifests, load_manifests, parse_manifests, read_manifests, repeated

__all__ = [
    "SUFFIXES",
    "BadManifests",
    "FileContents",
    "Manifest",
    "ManifestProblem",
    "ManifestText",
    "Manifests",
    "find_positions",
    "load_manifests",
    "name_of",
    "parse_manifests",
    "read_files",
    "read_manifests",
    "repeated",
]
