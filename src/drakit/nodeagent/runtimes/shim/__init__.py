"""The process that stands between the agent and a container, and outlives the agent.

In:  a container's directory with `launch.json`.
Out: the container's process; its output in a log file of the CRI format; `running.json` while it runs and `exit.json`
     after its end; a socket for attach and control.

It is started as a program of its own, with Python's standard library and this package alone: it must start quickly,
stay small, and go on whatever becomes of the agent. Modules here import nothing else of drakit.
"""
