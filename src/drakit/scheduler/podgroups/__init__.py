"""PodGroups and their members, and the plugin that keeps a gang out of the queue until it is complete."""
