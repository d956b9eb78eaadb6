"""What all tests share: random data that a failure can repeat, and Debian's real documents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from geomi.store import POSTGRESQL, SQLITE, Store, open_store
from postgres import Postgres, server
from resume import Resume

settings.register_profile(
    "geomi",
    deadline=None,  # the machine may be busy; no test asserts on time
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", parent=settings.get_profile("geomi"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "geomi"))

#: Package -> where Debian puts its HTML.
DOCUMENTS = {
    "python3-doc": Path("/usr/share/doc/python3/html"),
    "postgresql-doc-15": Path("/usr/share/doc/postgresql-doc-15/html"),
    "openjdk-17-doc": Path("/usr/share/doc/openjdk-17-doc/api"),
}


@pytest.fixture(params=DOCUMENTS)
def documents(request: pytest.FixtureRequest) -> Path:
    """The folder of each real documentation set in turn; skipped where it is not installed."""
    folder = DOCUMENTS[request.param].resolve()
    if not (folder / "index.html").exists():
        pytest.skip(f"Debian package {request.param} is not installed")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests that do it no harm; each takes a schema of its own."""
    with server() as running:
        yield running


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind in turn."""
    if request.param == SQLITE:
        return str(tmp_path / "s.db")
    running: Postgres = request.getfixturevalue("postgres")
    return running.schema()


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def shared(request: pytest.FixtureRequest) -> str:
    """What `store` says in geomi.toml: nothing, or the address of an empty PostgreSQL schema."""
    if request.param == SQLITE:
        return ""
    running: Postgres = request.getfixturevalue("postgres")
    return running.schema()


@pytest.fixture
def connect(store_address: str) -> Iterator[Callable[..., Store]]:
    """Makes a connection to the store; each is closed at the end."""
    made: list[Store] = []

    def new(*, readonly: bool = False) -> Store:
        made.append(open_store(store_address, readonly=readonly))
        return made[-1]

    yield new
    for store in made:
        store.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--resume",
        metavar="FILE",
        help="leave out what passed before by this file, while the sources are the same",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--resume"):
        config.pluginmanager.register(Resume(Path(config.getoption("--resume"))))
