"""What the plugin knows: claims with the allocations in flight, devices, nodes that go, and what one pod needs."""
