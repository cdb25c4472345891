"""Plugins of the node: found in the registry directory, registered, reached, watched."""
