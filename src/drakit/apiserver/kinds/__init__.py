"""Which kinds are served in which versions, and of which Kubernetes release the server is."""
