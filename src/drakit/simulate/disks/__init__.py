"""Disks that take time to flush and lose what they have not: of the API server, and of a machine."""
