"""Authorization by roles and their bindings."""
