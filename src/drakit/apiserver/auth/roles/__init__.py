"""The roles and bindings that every cluster has: for people, components, controllers and nodes."""
