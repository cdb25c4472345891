"""What a kubelet asks for, without the sockets that it asks over.

| module | what it has |
| --- | --- |
| `meter` | where the time of a call goes |
| `inventory` | the devices that the driver says it has |
| `reader` | claims from the server, checked |
| `answers` | what the author's code answered, checked |
| `artifacts` | the files that containers get |
| `statuses` | what claims say of devices |
| `lifecycle` | prepare and unprepare |
| `sweep` | claims that are gone, files that are missing |
| `binder` | devices that pods wait for |
"""
