"""What the caller gets: allocations that can be stored as they are, or the reasons why there are none."""
