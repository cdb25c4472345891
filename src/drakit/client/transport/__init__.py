"""How requests travel: in process or over HTTP; retries; streams."""
