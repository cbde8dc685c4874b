"""What the remote ledger, blobs, hints and originals share: the connection of a worker that has no credentials."""

import os

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # else gRPC writes every failed handshake to stderr
