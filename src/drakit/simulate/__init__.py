"""A whole cluster in one process on a virtual clock; faults, invariants, seeds. See `docs/simulation.md`.

| part | what it has |
| --- | --- |
| `loops` | event loops whose time is virtual: one that can also serve sockets, one that draws every order from a seed |
| `hardware` | devices of a node as they really are, and a driver for them |
| `links` | an agent and the drivers of its node, without sockets |
| `nodes` | a node: agent, simulated runtime, driver kit |
| `cluster` | server, controllers, scheduler and nodes, put together |
| `world`, `network`, `faults`, `workload` | the same as processes of one seed, what goes wrong, what users ask for |
| `rules` | what must hold |
| `runs`, `workers`, `shrink` | one run, many, the shortest that fails |
"""
