"""What an object counts against a ResourceQuota: one answer for admission and for the usage controller.

In:  an object, and the device classes of the cluster.
Out: amounts by quota name; whether a quota's scopes cover the object; which limits an increase would exceed.
"""

from drakit.quota.claims import ClassLookup, class_names, owner_name
from drakit.quota.limits import Excess, excess, increase, unknown, unspecified
from drakit.quota.scopes import covers
from drakit.quota.usage import tracked, usage

__all__ = [
    "ClassLookup",
    "Excess",
    "class_names",
    "covers",
    "excess",
    "increase",
    "owner_name",
    "tracked",
    "unknown",
    "unspecified",
    "usage",
]
