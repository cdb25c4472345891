"""Between the served versions of a kind; what the server fills in."""
