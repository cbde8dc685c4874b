"""Shared by everything that stores objects in a bucket: location, client, conditional writes."""
