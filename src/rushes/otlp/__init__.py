"""Telemetry for a collector: spans and figures by OTLP over HTTP, as the variables OTEL_* of OpenTelemetry say."""
