"""Telemetry for a collector: spans and metrics by OTLP over HTTP, configured by the OTEL_* variables."""
