"""What runs in this process: servers, components, nodes; how they start, show themselves and stop."""
