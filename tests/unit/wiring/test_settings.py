"""Settings: environment over file over default, and where each value came from."""

from dataclasses import fields
from pathlib import Path

import pytest

from rushes import settings
from rushes.domain.errors import Refused
from rushes.home_location import find_home
from rushes.model_settings import inference_of
from rushes.settings import STORAGE_ADAPTER, Settings, foreign_variables, load


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No file of the user who runs the tests plays a part."""
    monkeypatch.setattr(settings, "user_file", lambda: tmp_path / "user.toml")


def test_defaults_say_so(tmp_path: Path) -> None:
    loaded = settings.load(tmp_path, {})
    assert loaded.settings.chunk_seconds == 60
    assert set(loaded.origin.values()) == {"default"}


def test_the_environment_wins_over_the_home_which_wins_over_the_user(tmp_path: Path) -> None:
    (tmp_path / "user.toml").write_text("chunk_seconds = 10\nslots = 1\nprofile = 'fast'\n")
    (tmp_path / "rushes.toml").write_text("chunk_seconds = 20\nslots = 2\n")
    loaded = settings.load(tmp_path, {"RUSHES_CHUNK_SECONDS": "30"})
    s = loaded.settings
    assert (s.chunk_seconds, s.slots, s.profile) == (30, 2, "fast")
    assert loaded.origin["chunk_seconds"] == "RUSHES_CHUNK_SECONDS"
    assert loaded.origin["slots"] == str(tmp_path / "rushes.toml")
    assert loaded.origin["profile"] == str(tmp_path / "user.toml")


def test_other_designs_names_are_aliases_and_ours_wins(tmp_path: Path) -> None:
    loaded = settings.load(tmp_path, {"LOG_LEVEL": "info", "MODEL_CACHE_DIR": "a", "RUSHES_MODELS": "b"})
    assert (loaded.settings.log_level, loaded.settings.models) == ("info", "b")
    assert loaded.origin["log_level"] == "LOG_LEVEL"
    assert loaded.origin["models"] == "RUSHES_MODELS"


@pytest.mark.parametrize("text", ["chunk_seconds = 'many'", "no_such_thing = 1", "beside = 'perhaps'", "[broken"])
def test_a_bad_file_is_refused_with_its_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "rushes.toml").write_text(text)
    with pytest.raises(Refused, match=r"rushes\.toml"):
        settings.load(tmp_path, {})


def test_a_truth_value_in_the_environment_is_read_as_people_write_it(tmp_path: Path) -> None:
    assert settings.load(tmp_path, {"RUSHES_BESIDE": "no"}).settings.beside is False
    assert settings.load(tmp_path, {"RUSHES_BESIDE": "1"}).settings.beside is True


def test_the_nearest_home_upwards_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUSHES_HOME", raising=False)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / ".rushes").mkdir()
    assert find_home(deep) == tmp_path / ".rushes"
    assert find_home(deep, tmp_path / "other") == tmp_path / "other"
    monkeypatch.setenv("RUSHES_HOME", str(tmp_path / "named"))
    assert find_home(deep) == tmp_path / "named"


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [
        ("store", "postgres://ann:p4ss@db:5432/x", "postgres://ann:***@db:5432/x"),
        ("store", "postgres://db/x", "postgres://db/x"),
        ("s3_secret", "p4ss", "***"),
        ("slots", "3", 3),
    ],
)
def test_passwords_are_never_shown(name: str, value: str, seen: object) -> None:
    loaded = settings.load(env={f"RUSHES_{name.upper()}": value})
    assert settings.shown(loaded.settings, name) == seen


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("RUSHES_SLOTS", "many", "a whole number, 0 or more"),
        ("RUSHES_SLOTS", "-3", "a whole number, 0 or more"),
        ("RUSHES_CHUNK_SECONDS", "0", "a whole number, 1 or more"),
        ("RUSHES_BESIDE", "perhaps", "true or false"),
        ("RUSHES_PROFILE", "best", "fast, balanced, high_quality"),
        ("LOG_LEVEL", "loud", "debug, info, warning, error"),
    ],
)
def test_a_bad_variable_is_named_together_with_what_it_may_be(variable: str, value: str, allowed: str) -> None:
    with pytest.raises(Refused, match=f"{variable} = {value!r}") as refused:
        settings.load(env={variable: value})
    assert allowed in refused.value.advice


def test_a_level_may_be_written_in_capitals(tmp_path: Path) -> None:
    assert settings.load(tmp_path, {"LOG_LEVEL": "INFO"}).settings.log_level == "info"


DOCUMENTED = """
DATABASE_URL REDIS_URL ML_SERVICE_URL LOG_LEVEL GPU_MODE ARQ_MAX_JOBS ARQ_JOB_TIMEOUT GPU_CONCURRENCY MODEL_CACHE_DIR
REQUIRE_GPU POSTGRES_DB POSTGRES_USER POSTGRES_PASSWORD STORAGE_ADAPTER STORAGE_PROVIDER METRICS_PROVIDER IW3_LOW_VRAM
INFERENCE_BACKEND INFERENCE_HTTP_URL INFERENCE_MAX_IN_FLIGHT ETA_SECONDS_PER_MB SQS_LONG_POLL_WAIT_SECONDS
SUPABASE_URL SUPABASE_SERVICE_ROLE_KEY S3_ENDPOINT S3_BUCKET S3_ACCESS_KEY_ID S3_SECRET_ACCESS_KEY
"""  # those of AWS_* and OTEL_* are read as everybody reads them


@pytest.mark.parametrize("variable", DOCUMENTED.split())
def test_every_variable_of_the_documents_is_read_or_told(variable: str) -> None:
    aliases = {alias for f in fields(Settings) for alias in f.metadata["aliases"]}
    told = foreign_variables({variable: "x"})
    assert (variable in {*aliases, *STORAGE_ADAPTER}) is not bool(told)


def test_the_documents_names_for_lanes_and_slots_are_aliases(tmp_path: Path) -> None:
    loaded = settings.load(tmp_path, {"GPU_MODE": "gpu", "ARQ_MAX_JOBS": "3"})
    assert (loaded.settings.lanes, loaded.settings.slots) == ("gpu", 3)
    loaded = settings.load(tmp_path, {"GPU_MODE": "gpu", "RUSHES_LANES": "cpu"})
    assert loaded.settings.lanes == "cpu"


@pytest.mark.parametrize("driver", ["", "+asyncpg", "+psycopg", "+psycopg2"])
@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_a_database_url_may_name_a_driver(scheme: str, driver: str) -> None:
    loaded = settings.load(env={"DATABASE_URL": f"{scheme}{driver}://ann:p+x@db:5432/x?a=b"})
    assert loaded.settings.store == f"{scheme}://ann:p+x@db:5432/x?a=b"


@pytest.mark.parametrize(
    ("env", "stage", "where"),
    [
        ({}, "transcribe", ("local", ())),
        ({"INFERENCE_BACKEND": "stub"}, "depth", ("stub", ())),
        ({"ML_SERVICE_URL": "http://ml:8001"}, "depth", ("http", ("http://ml:8001",))),
        (
            {"INFERENCE_BACKEND": "http", "INFERENCE_HTTP_URL": "http://a:1, http://b"},
            "x",
            ("http", ("http://a:1", "http://b")),
        ),
        ({"INFERENCE_BACKEND": "local", "ML_SERVICE_URL": "http://ml:8001"}, "depth", ("local", ())),
        ({"RUSHES_INFERENCE": "https://ml"}, "depth", ("http", ("https://ml",))),
        (
            {"RUSHES_STAGE_INFERENCE": "transcribe=http://gpu:8001 depth=stub"},
            "transcribe",
            ("http", ("http://gpu:8001",)),
        ),
        ({"RUSHES_STAGE_INFERENCE": "transcribe=http://gpu:8001 depth=stub"}, "depth", ("stub", ())),
        (
            {"RUSHES_STAGE_INFERENCE": "transcribe=http", "ML_SERVICE_URL": "http://ml"},
            "transcribe",
            ("http", ("http://ml",)),
        ),
        (
            {"RUSHES_STAGE_INFERENCE": "transcribe=local", "ML_SERVICE_URL": "http://ml"},
            "objects",
            ("http", ("http://ml",)),
        ),
    ],
)
def test_models_run_where_the_settings_say_for_each_stage(
    env: dict[str, str], stage: str, where: tuple[str, tuple[str, ...]]
) -> None:
    assert inference_of(load(None, env).settings, stage) == where


@pytest.mark.parametrize(
    "value", ["http", "ftp://x", "sagemaker", "gpu", "http://", "http://ml:port", "http://[ml", "http://ml,sagemaker:x"]
)
def test_inference_that_means_nothing_is_refused(value: str) -> None:
    with pytest.raises(Refused, match="inference"):
        inference_of(load(None, {"RUSHES_INFERENCE": value}).settings, "depth")


@pytest.mark.parametrize("value", ["depth", "depth=", "=local", "depth = local"])
def test_inference_of_a_stage_that_cannot_be_understood_is_refused(value: str) -> None:
    with pytest.raises(Refused, match="stage_inference"):
        inference_of(load(None, {"RUSHES_STAGE_INFERENCE": value}).settings, "depth")
