"""Publish devices: cut pools into slices, and keep the server's slices as they should be.

In order: `layout` (which device in which slice), `plan` (what to write; both pure), `dropped` (what the server did not
keep), `publisher` (the loop that writes).
"""
