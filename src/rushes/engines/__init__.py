"""Inference: the models and where they run."""

import os

# From 1.29 on ONNX Runtime, once imported, tells its makers what it runs and keeps a number of the machine in ~/.cache.
# This stands before every import of it; faster-whisper imports it too.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
