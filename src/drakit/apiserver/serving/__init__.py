"""The composition of a server: settings, bootstrap objects and roles, one `Server` out of all parts."""
