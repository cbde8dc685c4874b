"""Opens the stores of a home as the settings say. The only package that names a backend."""

from pathlib import Path

from rushes import home_folder
from rushes.domain.errors import Refused, WrongHome
from rushes.domain.redaction import has_raw_password
from rushes.domain.video import BUCKETS
from rushes.home import Home
from rushes.settings import NO_OPTIONS, REMOTE, Options, Settings, load
from rushes.stores import Stores
from rushes.wiring.incarnation import incarnation
from rushes.wiring.setup import needed

_POSTGRES, _DYNAMODB = ("postgres://", "postgresql://"), "dynamodb://"


def open_home(
    home: Path,
    *,
    create: bool = True,
    take_over: bool = False,
    named: bool = True,
    options: Options = NO_OPTIONS,
    process: str = "library",
) -> Home:
    """Open a home, making it if it is not there; one that nobody `named` must be trusted if its settings matter.

    `process` is what its servers call this process.

    Raises:
        WrongHome: it cannot be opened safely from here.
    """
    if not home.is_dir() and not create:
        raise WrongHome(f"no home at {home}", "Create one with: rushes init")
    home_folder.prepare(home)
    loaded = load(home, trusted=named or home_folder.is_trusted(home)).over(options)
    stores = stores_of(loaded.settings, home, take_over=take_over, process=process)
    return Home(home, loaded, stores, take_over)


def check_stores(home: Home) -> None:
    """Open what a worker works with. Raises StoreAway, and what is wrong with each store."""
    if home.settings.store.startswith(REMOTE):
        from rushes.wiring.remote import remote_ports

        remote_ports(home, str)
        return
    _ = home.ledger, home.records, home.transport, home.blobs


def stores_of(settings: Settings, home: Path, *, take_over: bool = False, process: str = "") -> Stores:
    """The set-up that the settings mean.

    Raises:
        Refused: there is no such store, or its address cannot be read in one way only.
    """
    for name in ("store", "listen", "hints"):
        if has_raw_password(getattr(settings, name)):
            raise Refused(f"the password in {name} has characters that must be encoded", "Write @ as %40 and / as %2F.")
    if not settings.store:
        from rushes.wiring.local import LocalSetup

        return LocalSetup(settings, home, take_over=take_over)
    if settings.store.startswith(_POSTGRES):
        with needed("postgres"):
            from rushes.wiring.postgres import PostgresSetup
        return PostgresSetup(settings, home, process)
    if settings.store.startswith(_DYNAMODB):
        with needed("aws"):
            from rushes.wiring.aws import AwsSetup
        return AwsSetup(settings, home)
    if settings.store.startswith(BUCKETS):
        with needed("s3"):
            from rushes.wiring.bucket import BucketSetup
        return BucketSetup(settings, home, incarnation((), 0, settings.owner))
    if settings.store.startswith(REMOTE):
        with needed("grpc"):
            from rushes.wiring.remote import RemoteSetup
        return RemoteSetup(settings, home)
    hint = "Supported: postgres://..., dynamodb://table, s3://bucket/prefix and, for a worker, grpcs://host:port."
    raise Refused(f"unknown store {settings.store!r}", hint)
