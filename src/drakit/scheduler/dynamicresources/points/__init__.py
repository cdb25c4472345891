"""The extension points of the plugin, one module for each, and the writes of a claim."""
