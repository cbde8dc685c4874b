"""The inference service needs no library of a store."""

import subprocess
import sys
from pathlib import Path

NO_STORES = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("psycopg", "boto3", "botocore", "redis", "obstore"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Blocked())
from rushes.library.inference import InferenceService
from rushes.settings import Settings
from rushes.surfaces.ml.app import create
settings = Settings(models=sys.argv[1], ml_models="fastdepth")
service = InferenceService(settings)
service.start()
create(service, settings)
print(service.health().status, "rushes.ledger.sqlite" in sys.modules)
"""


def test_the_service_starts_without_any_library_of_a_store_and_opens_no_ledger(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", NO_STORES, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.split()[:2] == ["healthy", "False"], done.stderr
    assert not list(tmp_path.glob("**/*.sqlite"))
