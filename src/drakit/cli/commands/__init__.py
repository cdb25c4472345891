"""The commands: a module each, which reads its flags and calls the rooms."""
