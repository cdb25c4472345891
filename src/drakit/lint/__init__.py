"""Lint: what a server would say to manifests, and what no server says.

In:  texts of files, the feature gates that are on.
Out: a Report: errors in the words of the server, and warnings about selectors that match nothing, names that no device
     has, counts and constraints that no node can meet, slices and classes that contradict each other, old versions.
"""

from drakit.lint.findings import Finding, Report, Severity
from drakit.lint.linter import lint
from drakit.lint.validity import problems_of

__all__ = ["Finding", "Report", "Severity", "lint", "problems_of"]
