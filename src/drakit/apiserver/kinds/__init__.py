"""Which kinds are served in which versions, and which Kubernetes release the server behaves like."""
