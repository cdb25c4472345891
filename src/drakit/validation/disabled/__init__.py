"""Fields whose feature gate is off: dropped from new objects, kept where the old object uses them."""
