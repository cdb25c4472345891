"""Rules of the kinds around pods and claims."""
