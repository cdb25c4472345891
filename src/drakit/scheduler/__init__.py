"""The scheduler: which node a pod runs on, and which devices it gets there."""
