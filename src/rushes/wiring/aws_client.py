"""Clients of AWS services, as the settings say."""

import os

from rushes.aws.client import Service
from rushes.settings import Settings

ELSEWHERE = "us-east-1"  # what services with the same API answer to


def service_of(settings: Settings, name: str, answer_seconds: float = 5.0) -> Service:
    """A client of one of Amazon's services, or of what stands in for it."""
    s = settings
    region = os.environ.get("AWS_REGION", "")  # which boto3 does not read; the rest of its sources it finds itself
    if s.aws_endpoint and not region and not os.environ.get("AWS_DEFAULT_REGION"):
        region = ELSEWHERE
    own = (s.s3_key, s.s3_secret) if s.aws_endpoint else ("", "")
    endpoint = os.environ.get(f"AWS_ENDPOINT_URL_{name.upper().replace('-', '_')}", s.aws_endpoint)
    return Service(name, endpoint, region, *own, answer_seconds=answer_seconds)
