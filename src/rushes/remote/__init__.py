"""What the remote ledger, blobs, hints and originals share: the connection of a worker that has no credentials."""
