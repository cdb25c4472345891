"""Who may do what: roles, nodes, the status of claims, impersonation, tokens of service accounts, the audit log.

`guard.Guard` holds it together for one server; `identities` says who drakit's own components are, `component_roles`
what a driver needs. Modules are imported by name: the server uses some of them, and they use some of the server.
"""
