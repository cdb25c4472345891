"""One pod at a time: which node it gets (the cycle), what is then written (the binding), or else (the failure)."""
