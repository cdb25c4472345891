"""The engine on etcd v3: several API servers share one truth.

In:  the contract of a store, from each of them.
Out: transactions and one watch to etcd; reads from a copy in memory that is known to be new enough.

`connection` has the endpoints, `requests` the messages, `follower` the watch that keeps the copy, `engine` the store.
"""

from drakit.store.etcd.connection import EtcdAccess
from drakit.store.etcd.engine import EtcdStore

__all__ = ["EtcdAccess", "EtcdStore"]
