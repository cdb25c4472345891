"""How answers look: forms, tables, progress."""
