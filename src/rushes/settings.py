"""Settings: environment over rushes.toml over defaults, each value with the place it came from."""

import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from math import inf
from pathlib import Path
from typing import Any

import platformdirs

from rushes.domain.errors import Refused, WrongHome
from rushes.domain.redaction import HIDDEN, redact_address, remember_secrets, secrets_in, secrets_of

FILE_NAME = "rushes.toml"
REMOTE = ("grpcs://", "grpc://")  # a server, for a worker without credentials
PROFILES = ("fast", "balanced", "high_quality")
_MODES = ("auto", "require", "off")
_LEVELS = ("debug", "info", "warning", "error")
_SECRET = frozenset({"s3_secret", "token", "worker_token", "inference_token", "webhook_secret", "events_token"})
_WEBHOOK = "webhook"  # whoever knows its address can call it
# What a home may set before somebody trusts it: nothing that reaches out, lets in, or loosens a limit.
_HARMLESS = frozenset({"owner", "profile", "recipe", "chunk_seconds", "slots", "threads", "lanes", "slot_tasks",
                       "drain_seconds", "keep_days", "clip_days", "log_level", "beside", "audit_days"})  # fmt: skip
_DRIVER = re.compile(r"(?<=^postgres)\+\w+(?=://)|(?<=^postgresql)\+\w+(?=://)")  # SQLAlchemy's, of no use to us
_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


# Variables of the design documents that say something else here, each with what to set instead; `rushes doctor` tells.
FOREIGN_VARIABLES = {
    "SUPABASE_URL": "DATABASE_URL: the address of its PostgreSQL",
    "SUPABASE_SERVICE_ROLE_KEY": "DATABASE_URL: it holds the name and password of a role",
    "POSTGRES_USER": "DATABASE_URL",
    "POSTGRES_PASSWORD": "DATABASE_URL",
    "POSTGRES_DB": "DATABASE_URL",
    "METRICS_PROVIDER": "OTEL_EXPORTER_OTLP_ENDPOINT",
}
# Whose bucket is meant where S3_BUCKET is a bare name.
STORAGE_ADAPTER = ("STORAGE_ADAPTER", "STORAGE_PROVIDER")
_ADAPTERS = {"aws": "s3://", "gcp": "gs://", "azure": "az://"}


def _field(doc: str, default: Any = None, *aliases: str, of: tuple[str, ...] = (), least: int = 0) -> Any:
    """A setting; `of` lists the values it may have, `least` is the smallest number."""
    return field(default=default, repr=False, metadata={"doc": doc, "aliases": aliases, "of": of, "least": least})


Options = Mapping[str, tuple[Any, str]]  # a setting -> its value and where that comes from
NO_OPTIONS: Options = {}


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be configured. `RUSHES_<NAME>` in the environment, or `name = ...` in rushes.toml."""

    store: str = _field(
        "ledger: empty = a file in the home, postgres://..., dynamodb://table, or a bucket (s3://, gs:// or az://)",
        "",
        "DATABASE_URL",
    )
    blobs: str = _field(
        "results: empty = a folder in the home, s3://bucket/prefix, gs:// or az://; "
        "of a bare S3_BUCKET, STORAGE_ADAPTER says where it is: aws (the default), gcp or azure",
        "",
        "S3_BUCKET",
    )
    hints: str = _field("hints: empty = the store itself, redis://host:port, or valkey://host:port", "", "REDIS_URL")
    site: str = _field("name of the machines that see the same files under the same paths (empty = this one alone)", "")
    shared: bool = _field("the home's folder is mounted on every worker of the fleet", default=False)
    s3_endpoint: str = _field("S3 service to use instead of Amazon's", "", "S3_ENDPOINT")
    s3_key: str = _field("key id for S3 (empty = the usual AWS sources)", "", "S3_ACCESS_KEY_ID")
    s3_secret: str = _field("secret for S3, never shown", "", "S3_SECRET_ACCESS_KEY")
    s3_public: str = _field("address of the S3 service for browsers (empty = s3_endpoint)", "")
    presigned: bool = _field("browsers upload directly to the bucket, with presigned URLs", default=True)
    aws_endpoint: str = _field("DynamoDB and SQS service to use instead of Amazon's", "", "AWS_ENDPOINT_URL")
    sqs_wait_seconds: int = _field(
        "long-poll time of a request for messages, at most 20 seconds", 20, "SQS_LONG_POLL_WAIT_SECONDS"
    )
    pgbouncer: bool = _field("the store is behind pgBouncer: use no prepared statements", default=False)
    listen: str = _field("direct postgres://... address for LISTEN when the store is behind pgBouncer", "")
    owner: str = _field("owner of the videos, jobs and results", "me")
    profile: str = _field("models to use: fast, balanced or high_quality", "balanced", of=PROFILES)
    sources: str = _field(
        "folders and buckets to watch, and from which videos may be added over HTTP, comma separated", ""
    )
    storage_events: str = _field("SQS queue (name or URL) with storage events of buckets, or addresses of videos", "")
    events_token: str = _field("token of a storage that posts its events to /api/v1/storage-events, never shown", "")
    recipe: str = _field("default recipe", "searchable")
    options: str = _field("default options of stages, e.g. develop.target_fps=5 read_text.languages=en+de", "")
    chunk_seconds: int = _field("length of a chunk in seconds; cut at the next key frame", 60, least=1)
    slots: int = _field("child processes that run at the same time (0 = one per core)", 0, "ARQ_MAX_JOBS")
    threads: int = _field("threads for the models of one slot (0 = cores / slots)", 0)
    lanes: str = _field("lanes that a worker takes: cpu, gpu (models), cpu,gpu, or auto for all", "auto", "GPU_MODE")
    task_seconds: int = _field("time limit of an attempt on a chunk, in seconds (0 = none)", 1800, "ARQ_JOB_TIMEOUT")
    slot_memory_mb: int = _field("memory limit of a slot's process tree, in MB", 4096)
    slot_tasks: int = _field("a slot is replaced by a new process after this many tasks", 200)
    sandbox: str = _field("confine slots: auto (what the kernel allows), require (all), or off", "auto", of=_MODES)
    slot_address_gb: int = _field(
        "address space limit of a slot, in GB; mapped files and reservations count", 64, least=1
    )
    slot_file_gb: int = _field("largest file that a slot may write, in GB", 1024, least=1)
    start_seconds: int = _field(
        "seconds that a worker or server waits at startup for a store that does not respond", 60
    )
    drain_seconds: int = _field("seconds that running tasks may take to finish when a worker stops", 120)
    checkpoint_seconds: int = _field(
        "seconds between two uploads of a film's database to a home in a bucket (0 = after every change)", 2
    )
    spot_notice: str = _field(
        "drain before EC2 takes this instance away: auto (on EC2), off, aws, or a metadata URL", "auto"
    )
    reserve_mb: int = _field("work pauses when the home's disk has less free space than this, in MB", 512)
    max_pixels: int = _field("larger pictures are refused", 36_000_000)
    max_hours: int = _field("longer videos are refused", 24)
    models: str = _field("folder of the models (empty = the user's cache)", "", "MODEL_CACHE_DIR")
    speech_model: str = _field(
        "a Whisper model to use instead of the profile's: a CTranslate2 folder, a hub id, a name of rushes models ls; "
        "or by profile: fast=... balanced=... high_quality=... (the other models accept this form, too)",
        "",
    )
    text_model: str = _field("a folder with det.onnx and rec.onnx to use instead, or tesseract if it is installed", "")
    objects_model: str = _field("a folder with an EfficientDet-Lite model.tflite to use instead", "")
    faces_model: str = _field("a folder with yunet.onnx and sface.onnx to use instead", "")
    places_model: str = _field("a folder with model.onnx and its list of names (Places365) to use instead", "")
    depth_model: str = _field("a folder with a depth model in ONNX format (MiDaS, Depth Anything) to use instead", "")
    pictures_model: str = _field(
        "a folder with image.onnx, text.onnx and tokenizer.json (a CLIP): ~ in a search also looks at pictures",
        "",
    )
    inference: str = _field(
        "where models run: local, http (see inference_url), an address, sagemaker:ENDPOINT (asynchronous), "
        "or stub (fake answers, for tests); "
        "empty = http if inference_url is set, else local",
        "",
        "INFERENCE_BACKEND",
    )
    inference_url: str = _field(
        "address of the inference service (rushes ml), or of several, comma separated",
        "",
        "INFERENCE_HTTP_URL",
        "ML_SERVICE_URL",
    )
    stage_inference: str = _field("inference of single stages: transcribe=http://gpu:8001 read_text=local", "")
    inference_token: str = _field("token that rushes ml requires and that workers send, never shown", "")
    inference_seconds: int = _field("time limit of one request to an inference service, in seconds", 600, least=1)
    inference_max_in_flight: int = _field(
        "requests to inference services that one worker makes at the same time", 5, "INFERENCE_MAX_IN_FLIGHT", least=1
    )
    inference_bucket: str = _field(
        "s3://bucket/prefix for requests to an asynchronous endpoint (empty = inference/ below blobs)", ""
    )
    inference_events: str = _field(
        "SQS queue (name or URL) with the storage events of an asynchronous endpoint's answers", ""
    )
    device: str = _field("where rushes ml runs models: auto (a GPU if there is one), cpu, cuda or cuda:N", "auto")
    require_gpu: bool = _field("rushes ml does not start without a GPU", False, "REQUIRE_GPU")  # noqa: FBT003 - aliases follow it
    ml_models: str = _field("models that rushes ml loads at startup, comma separated (empty = all)", "")
    gpu_concurrency: int = _field("models that rushes ml uses at the same time", 2, "GPU_CONCURRENCY", least=1)
    low_memory: bool = _field(
        "rushes ml runs one model and one 3D conversion at a time, and releases memory after each",
        False,  # noqa: FBT003 - aliases follow it
        "IW3_LOW_VRAM",
    )
    inference_queue: int = _field("requests that rushes ml accepts at the same time; others get 429", 64, least=1)
    transcripts_prefix: str = _field("folder of published transcripts, named after their videos", "transcripts",
                                     "TRANSCRIPTS_PREFIX")  # fmt: skip
    video_prefix: str = _field("folder of a bucket that is left out of transcript names", "videos", "VIDEO_PREFIX")
    keep_days: int = _field("days to keep intermediate chunks after the job is done", 1)
    clip_days: int = _field("days to keep clips", 30)
    events_ttl_days: int = _field("days to keep events and log lines of jobs (0 = all; the last event stays)", 30)
    jobs_ttl_days: int = _field("days to keep jobs that failed, were cancelled or have no results left (0 = all)", 0)
    log_level: str = _field("debug, info, warning or error", "warning", "LOG_LEVEL", of=_LEVELS)
    beside: bool = _field("write subtitles and a sidecar file next to the video", default=True)
    queues: str = _field("custom queues, for jobs over gRPC, comma separated", "")
    grpc_cert: str = _field("TLS certificate file for gRPC: of the server, or a client certificate of a worker", "")
    grpc_key: str = _field("file with the private key of grpc_cert", "")
    grpc_ca: str = _field("CA certificate file that verifies the other side (on a server: mTLS)", "")
    mcp_scopes: str = _field("what agents may do over MCP besides reading: add, delete, comma separated", "add")
    worker_token: str = _field("token of a worker without credentials (rushes worker --server), never shown", "")
    token: str = _field("token for programs that call the API (Authorization: Bearer ...), never shown", "")
    hosts: str = _field("additional host names that the API accepts, comma separated", "")
    cors: str = _field("web origins that may call the API, comma separated", "")
    proxy: str = _field("addresses or networks of TLS proxies whose X-Forwarded-* headers count, comma separated", "")
    fleet_admin: bool = _field("this server may drain the workers of every owner, not only its own", default=False)
    audit_days: int = _field("days to keep entries of the audit log", 365, least=1)
    upload_gb: int = _field("larger uploads are refused", 100)
    eta_seconds_per_mb: float = _field(
        "initial estimate of a 3D conversion, in seconds per MB of the file, until this machine has measured it",
        0.0,
        "ETA_SECONDS_PER_MB",
    )
    open_uploads: int = _field("open uploads allowed per user", 200)
    open_uploads_gb: int = _field(
        "GB that the open uploads of one user may still transfer (to a bucket: their full size)", 1000
    )
    webhook: str = _field("URL to call when a job is done or failed, a step gives up, or a worker is lost", "")
    webhook_secret: str = _field("secret that signs webhook calls, never shown", "")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and where each value came from: "default", a file, or an environment variable."""

    settings: Settings
    origin: Mapping[str, str]

    def over(self, options: Options) -> "Loaded":
        """The same with options of a command over it; those that are None were not given."""
        given = {name: value for name, (value, _) in options.items() if value is not None}
        origins = {name: options[name][1] for name in given}
        return Loaded(replace(self.settings, **given), {**self.origin, **origins})


def load(home: Path | None = None, env: Mapping[str, str] | None = None, *, trusted: bool = True) -> Loaded:
    """Read rushes.toml of the user and of the home, then the environment.

    Raises:
        Refused: a name that does not exist or a value of the wrong kind; says where.
        WrongHome: the home is not trusted, and sets what only a trusted one may.
    """
    env = os.environ if env is None else env
    values: dict[str, Any] = {}
    origin = {f.name: "default" for f in fields(Settings)}
    files = {user_file(): True} | ({home / FILE_NAME: trusted} if home else {})
    for file, is_trusted in files.items():
        _take(values, origin, read_file(file, trusted=is_trusted), str(file))
    for name, value in read_environment(env).items():
        variable = next(v for v in _variables(name) if v in env)
        _take(values, origin, {name: value}, variable)
    settings = Settings(**values)
    remember_secrets([*secrets_in(env), *secrets_of_settings(settings)])
    return Loaded(settings, origin)


def shown(settings: Settings, name: str) -> Any:
    """A value as it may be seen: without passwords."""
    value = getattr(settings, name)
    if name in _SECRET:
        return HIDDEN if value else ""
    return redact_address(value, secret_path=name == _WEBHOOK) if isinstance(value, str) else value


def secrets_of_settings(settings: Settings) -> list[str]:
    """Every secret among the settings: those that are one, and those inside of addresses."""
    values = {f.name: value for f in fields(settings) if isinstance(value := getattr(settings, f.name), str) and value}
    inside = (secrets_of(value, secret_path=name == _WEBHOOK) for name, value in values.items())
    return [*(values[name] for name in _SECRET & values.keys()), *(secret for some in inside for secret in some)]


@dataclass(frozen=True, slots=True)
class SettingValue:
    """One setting as it may be seen, and where its value came from."""

    name: str
    value: Any
    origin: str
    doc: str


def list_settings(loaded: Loaded) -> list[SettingValue]:
    """Every setting, without secrets."""
    values, origin = loaded.settings, loaded.origin
    return [SettingValue(f.name, shown(values, f.name), origin[f.name], f.metadata["doc"]) for f in fields(Settings)]


def user_file() -> Path:
    """The user's own rushes.toml."""
    return Path(platformdirs.user_config_dir("rushes")) / FILE_NAME


def _variables(name: str) -> tuple[str, ...]:
    aliases = next(f.metadata["aliases"] for f in fields(Settings) if f.name == name)
    return (f"RUSHES_{name.upper()}", *aliases)


def foreign_variables(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of a design document that are set and have no effect, each with what to set instead."""
    known = {alias for f in fields(Settings) for alias in f.metadata["aliases"]}
    return {name: instead for name, instead in FOREIGN_VARIABLES.items() if name in env and name not in known}


def read_environment(env: Mapping[str, str]) -> dict[str, Any]:
    """The settings that an environment sets, as text."""
    found = {f.name: env[v] for f in fields(Settings) for v in reversed(_variables(f.name)) if v in env}
    bucket = found.get("blobs", "")
    return found | ({"blobs": _adapter(env) + bucket} if bucket and "://" not in bucket else {})


def _adapter(env: Mapping[str, str]) -> str:
    """How the address of a bucket begins whose name stands alone."""
    variable = next((name for name in STORAGE_ADAPTER if env.get(name)), "")
    adapter = env[variable].lower() if variable else "aws"
    if adapter not in _ADAPTERS:
        raise Refused(f"{variable} = {adapter!r} is invalid", f"Allowed: {', '.join(_ADAPTERS)}.")
    return _ADAPTERS[adapter]


def read_file(file: Path, *, trusted: bool) -> dict[str, Any]:
    """What a rushes.toml says, nothing if there is none. Raises as `load`."""
    if not file.is_file():
        return {}
    try:
        found = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise Refused(f"{file}: {e}", "Correct the file, or remove it to use the defaults.") from e
    risky = ", ".join(sorted(found.keys() - _HARMLESS))
    if risky and not trusted:
        hint = f"Check that file. If you trust its author, run: rushes trust {shlex.quote(str(file.parent))}"
        raise WrongHome(f"{file} sets {risky}, and this home is not trusted", hint)
    return found


def _take(values: dict[str, Any], origin: dict[str, str], found: Mapping[str, Any], where: str) -> None:
    known = {f.name: f for f in fields(Settings)}
    for name, value in found.items():
        if name not in known:
            raise Refused(f"{where}: unknown setting {name!r}", "See: rushes config show")
        values[name] = _converted(known[name], value, where if where in _variables(name) else f"{where}: {name}")
        origin[name] = where


def _converted(setting: Field[Any], value: Any, where: str) -> Any:
    """A value of the kind that the setting has; says what may stand there."""
    kind, of, least = type(setting.default), setting.metadata["of"], setting.metadata["least"]
    made = _made(kind, value.lower() if of and isinstance(value, str) else value)
    if made is not None and (not of or made in of) and (kind not in (int, float) or least <= made < inf):
        return made
    numbers = {int: f"a whole number, {least} or more", float: f"a number, {least} or more"}
    allowed = ", ".join(of) or {**numbers, bool: "true or false"}.get(kind, "a text")
    raise Refused(f"{where} = {value!r} is invalid", f"Allowed: {allowed}.")


def _made(kind: type, value: Any) -> Any:
    """None if it is not of that kind."""
    if kind is bool and isinstance(value, str):
        return _TRUTH.get(value.lower())
    if kind is str:
        return _DRIVER.sub("", str(value))
    try:
        return kind("" if kind in (int, float) and isinstance(value, bool) else value)
    except (TypeError, ValueError):
        return None
