"""What a request says: its path, query options, body, accepted media types and continue token."""
