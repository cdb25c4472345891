"""The typed objects, a module per kind or group of kinds."""
