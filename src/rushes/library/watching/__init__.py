"""Watching folders and buckets: new videos there are added."""
