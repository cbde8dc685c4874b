"""A client for each design document, written from its text alone, against a real server with a real worker."""
