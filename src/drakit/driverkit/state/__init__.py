"""What survives: files, claim records, locks between processes.

In order: `files` (bytes on disk), `boot` (which boot this is), `records` (what is remembered of claims), `locks`.
"""
