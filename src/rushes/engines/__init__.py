"""Models at work."""

import os

# From 1.29 on ONNX Runtime, once imported, sends what it runs to its makers and keeps a number of the machine in ~/.cache;
# faster-whisper imports it too. This stands before every import of either.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
