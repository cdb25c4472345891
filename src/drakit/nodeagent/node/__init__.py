"""The node itself: its object, its heartbeat, its end."""
