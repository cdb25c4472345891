"""What a kubelet asks for, without the sockets that it asks over.

In order: `meter` (where time goes), `inventory` (the devices that there are), `reader` (claims from the server),
`artifacts` (files that containers get), `lifecycle` (prepare and unprepare), `sweep` (claims that are gone).
"""
