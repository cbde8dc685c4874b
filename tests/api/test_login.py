"""Logging in: guesses are counted before they are looked at, few are hashed at once, nobody is locked out by others."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

from rushes.library import Library
from rushes.library.access.accounts import HASHES, WAITING, Accounts
from rushes.library.access.throttle import ATTACKED, FREE, MOST, Throttle, TooManyTries, network
from tests.api.kit import DEADLINE, Serving, serving, wait_for

FORM = {"name": "ada", "password": "correct horse battery"}
WRONG = {"name": "ada", "password": "not the password"}
PROXY = "127.0.0.1"
TOKEN = "a-long-and-secret-token"


class CountingHasher(PasswordHasher):
    """The real one, cheap, that counts; a test may hold it."""

    def __init__(self) -> None:
        super().__init__(1, 8, 1)
        self.calls, self.now, self.most = Counter[str](), 0, 0
        self.go = threading.Event()
        self.go.set()
        self._guard = threading.Lock()

    def verify(self, *args: Any) -> Any:
        with self._guard:
            self.calls["verify"] += 1
            self.now += 1
            self.most = max(self.most, self.now)
        self.go.wait(DEADLINE)
        try:
            return super().verify(*args)
        finally:
            with self._guard:
                self.now -= 1

    def hash(self, *args: Any, **more: Any) -> str:
        self.calls["hash"] += 1
        return super().hash(*args, **more)


@pytest.fixture
def closed(home: Path) -> Iterator[Serving]:
    """A server with an account, behind a proxy that names its clients; time stands still for the throttle."""
    with serving(home, "0.0.0.0", proxy=PROXY) as server:
        accounts: Accounts = server.app.state.access.accounts
        accounts._hasher = CountingHasher()
        accounts.create("ada", FORM["password"])
        accounts.tries.clock = lambda: 0.0
        accounts.token_tries.clock = lambda: 0.0
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Library(tmp_path / "home") as library:
        Accounts(library.home, _hasher=PasswordHasher(1, 8, 1)).create("root", "an admin of this home")
    return tmp_path / "home"


def log_in(server: Serving, form: dict[str, str], address: str = "203.0.113.5") -> Any:
    return server.http.post("/login", data=form, headers={"X-Forwarded-For": address, "Accept": "text/html"})


def test_after_some_wrong_guesses_an_address_waits_and_another_does_not(closed: Serving) -> None:
    said = [log_in(closed, WRONG) for _ in range(FREE + 2)]
    assert [a.status_code for a in said] == [401] * FREE + [429] * 2
    assert int(said[-1].headers["retry-after"]) >= 1
    assert log_in(closed, FORM).status_code == 429, "guessing goes on where the right one is told from wrong ones"
    assert log_in(closed, FORM, "203.0.113.6").status_code == 303
    assert closed.app.state.access.accounts._hasher.calls["verify"] == FREE + 1


def test_a_name_that_many_addresses_guess_at_can_still_log_in_from_another(closed: Serving) -> None:
    said = [log_in(closed, WRONG, f"198.51.100.{n}").status_code for n in range(ATTACKED)]
    assert said == [401] * ATTACKED
    assert [log_in(closed, WRONG, "198.51.100.99").status_code for _ in range(2)] == [401, 429]
    assert log_in(closed, FORM, "203.0.113.6").status_code == 303


def test_a_flood_of_logins_is_turned_away_and_hashes_two_at_once(closed: Serving) -> None:
    hasher: CountingHasher = closed.app.state.access.accounts._hasher
    hasher.go.clear()
    said = Counter[int]()
    with ThreadPoolExecutor(60) as pool:
        flood = [pool.submit(log_in, closed, WRONG, f"198.51.100.{n}") for n in range(60)]
        wait_for(lambda: sum(f.done() for f in flood) >= 60 - HASHES - WAITING, "they all wait")
        assert closed.http.get("/healthz").status_code == 200
        hasher.go.set()
        said.update(f.result().status_code for f in flood)
    assert hasher.most <= HASHES
    assert said[429] + said[401] == 60
    assert said[429] >= 60 - HASHES - WAITING
    assert hasher.calls["verify"] == said[401]
    assert log_in(closed, FORM, "198.51.100.1").status_code == 303, "who was turned away unheard was not wrong"


def test_a_name_that_nobody_has_costs_as_much_as_one_that_somebody_has(closed: Serving) -> None:
    hasher: CountingHasher = closed.app.state.access.accounts._hasher
    log_in(closed, WRONG)
    for name in ("ada", "nobody", "No Such Name!", "", "x" * 999):
        hasher.calls.clear()
        answer = log_in(closed, {"name": name, "password": "not the password"}, "203.0.113.9")
        assert answer.status_code in (401, 422)
        assert hasher.calls == ({"verify": 1} if answer.status_code == 401 else {}), name


def test_tokens_cannot_be_guessed_for_long(home: Path) -> None:
    with serving(home, "0.0.0.0", token=TOKEN, proxy=PROXY) as server:
        server.app.state.access.accounts.token_tries.clock = lambda: 0.0

        def ask(token: str, address: str = "203.0.113.5") -> Any:
            said = {"Authorization": f"Bearer {token}", "X-Forwarded-For": address}
            return server.http.get("/api/v1/jobs", headers=said)

        assert [ask("an old setting").status_code for _ in range(50)] == [401] * 50, "the same again is no guess"
        said = [ask(f"guess {n}") for n in range(FREE)]
        assert [a.status_code for a in said] == [401] * (FREE - 1) + [429]
        assert int(said[-1].headers["retry-after"]) >= 1
        assert ask(TOKEN).status_code == 429
        assert ask(TOKEN, "203.0.113.6").status_code == 200


def test_a_password_that_changes_ends_every_session_and_so_does_a_removal(closed: Serving) -> None:
    accounts: Accounts = closed.app.state.access.accounts
    assert log_in(closed, FORM).status_code == 303
    assert closed.http.get("/api/v1/jobs").status_code == 200
    (session,) = accounts.sessions("ada")
    assert (session.account, session.address) == ("ada", "203.0.113.5")
    accounts.change_password("ada", "another horse battery")
    assert closed.http.get("/api/v1/jobs").status_code == 401
    assert log_in(closed, FORM | {"password": "another horse battery"}).status_code == 303
    accounts.remove("ada")
    assert closed.http.get("/api/v1/jobs").status_code == 401


def test_eight_at_once_make_one_account(tmp_path: Path) -> None:
    with serving(tmp_path / "fresh", "0.0.0.0", "the-code") as server:
        with ThreadPoolExecutor(8) as pool:
            forms = [{"name": f"user{n}", "password": "correct horse battery", "code": "the-code"} for n in range(8)]
            said = [pool.submit(server.http.post, "/setup", data=form) for form in forms]
            codes = Counter(f.result().status_code for f in said)
        assert codes == {303: 1, 403: 7}
        (one,) = server.app.state.access.accounts.all()
        assert one.admin


def test_an_open_server_makes_no_account_without_the_code(tmp_path: Path) -> None:
    with serving(tmp_path / "fresh") as server:
        for code in ("", "guess"):
            assert server.http.post("/setup", data=FORM | {"code": code}).status_code == 403
        assert server.app.state.access.accounts.all() == []


def test_the_throttle_forgets_and_remembers_only_so_many() -> None:
    now = [0.0]
    throttle = Throttle(clock=lambda: now[0])
    for n in range(2 * MOST):
        throttle.count(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", f"name{n}")
    assert len(throttle) <= MOST
    for _ in range(FREE + 20):
        throttle.count("2001:db8::1", "ada")
    with pytest.raises(TooManyTries) as no:
        throttle.check("2001:db8::ffff", "bert")
    assert 60 < no.value.retry_after <= 900
    throttle.check("2001:db8:0:1::1", "bert")
    now[0] = 4000.0
    throttle.check("2001:db8::1", "ada")
    assert len(throttle) == 0
    assert network("::ffff:10.0.0.1") == "10.0.0.1"
