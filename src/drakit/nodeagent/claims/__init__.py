"""A pod's claims on this node: checked, prepared, remembered on disk, unprepared."""
