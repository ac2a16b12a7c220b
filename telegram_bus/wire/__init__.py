"""The local bus: endpoints, connections, server and client over Unix sockets."""
