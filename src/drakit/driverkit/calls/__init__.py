"""What a kubelet asks for, without the sockets that it asks over.

In order: `meter` (where time goes), `inventory` (the devices that there are), `reader` (claims from the server),
`artifacts` (files that containers get), `statuses` (what claims say of devices), `lifecycle` (prepare and unprepare),
`sweep` (claims that are gone), `binder` (devices that pods wait for).
"""
