"""The local bus over real Unix sockets."""
