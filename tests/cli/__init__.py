"""The command line and wrapped programs."""
