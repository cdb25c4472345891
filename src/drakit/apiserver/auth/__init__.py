"""Who is asking (authentication) and whether that user may (authorization); the audit log."""
