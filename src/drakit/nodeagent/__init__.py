"""What a kubelet does for DRA: plugins register, claims are prepared, pods run, their status is told.

In:  pods bound to this node and their claims, from the API server; drivers that appear in the registry directory.
Out: calls to drivers, containers on a runtime, statuses and events.

`runtimes` starts and ends containers behind one contract; `containers` turns a Pod document into what a runtime needs.
"""
