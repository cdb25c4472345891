"""Authorization of nodes by what runs on them."""
