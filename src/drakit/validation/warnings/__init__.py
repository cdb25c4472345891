"""What is allowed and yet will not do what its author hopes: told as warnings, never refused."""
