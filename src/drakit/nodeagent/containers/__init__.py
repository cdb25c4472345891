"""From a Pod document to containers: environment, volumes, probes, hooks, limits, restart backoff."""
