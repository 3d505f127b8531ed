"""The verbs of `fleet`: what they print, and with which exit status."""

import json
import sys
from pathlib import Path
from typing import Protocol

import pytest
from sqlalchemy import create_engine, text

from fleets import gvisor
from substrate_compat.cli import run
from substrate_compat.wire import dumps_identity


class Fleet(Protocol):
    """Runs a verb of `fleet`: exit status, standard output, standard error."""

    def __call__(self, *arguments: str, db: str = ...) -> tuple[int, str, str]: ...


@pytest.fixture
def fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """In a folder with some identities, where the database will be a file."""
    monkeypatch.chdir(tmp_path)
    for name, mask in (("rich", "7"), ("plain", "1"), ("other", "8")):
        identity = gvisor(architecture="amd64", cpu_features=mask)
        Path(f"{name}.json").write_text(dumps_identity(identity))
    Path("unknown.json").write_text("null")

    def run_it(*arguments: str, db: str = "sqlite:///fleet.db") -> tuple[int, str, str]:
        status = run(["fleet", "--db", db, *arguments])
        return status, *capsys.readouterr()

    return run_it


@pytest.fixture
def loaded(fleet: Fleet) -> Fleet:
    fleet("load", "w1=rich.json", "w2=plain.json", "w3=plain.json")
    fleet("load-snapshots", "s1=rich.json", "s2=plain.json", "s3=other.json")
    return fleet


def test_load_says_what_the_fleet_has(fleet: Fleet) -> None:
    assert fleet("load", "w1=rich.json", "plain.json") == (
        0,
        "the fleet has 2 workers and 0 snapshots of 2 distinct identities\n",
        "",
    )
    assert fleet("load-snapshots", "s1=rich.json", "s2=other.json")[1] == (
        "the fleet has 2 workers and 2 snapshots of 3 distinct identities\n"
    )
    assert fleet("load", "w1=plain.json")[1].startswith("the fleet has 2 workers")


def test_load_takes_workers_as_check_does(fleet: Fleet) -> None:
    identity = gvisor(architecture="amd64", cpu_features="1")
    runtimes = {"defaultRuntime": dict(identity.compat_version.attributes)}
    Path("runtimes.json").write_text(json.dumps(runtimes))
    lines = [{"worker": name, "sandboxClass": "gvisor", **runtimes} for name in ("w1", "w2")]
    Path("workers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    arguments = ("load", "--workers", "workers.jsonl", "--sandbox-class", "gvisor", "w3=runtimes.json")
    assert fleet(*arguments)[1] == "the fleet has 3 workers and 0 snapshots of 1 distinct identities\n"
    status, _, err = fleet("load")
    assert status == 2
    assert "give at least one worker" in err


def test_candidates(loaded: Fleet) -> None:
    status, out, _ = loaded("candidates", "plain.json")
    assert status == 0
    assert [line.split(None, 1)[0] for line in out.split("\n")[:-1]] == ["worker", "w1", "w2", "w3"]
    assert loaded("candidates", "--limit", "1", "rich.json")[1].split("\n")[1].split() == [
        "w1",
        "default",
        "runtime",
    ]
    assert loaded("candidates", "other.json") == (1, "no worker can restore the snapshot\n", "")
    status, out, _ = loaded("candidates", "--json", "rich.json")
    assert (status, json.loads(out)) == (
        0,
        {"candidates": [{"worker": "w1", "runtime": "default runtime"}]},
    )


def test_an_unknown_snapshot_fits_everywhere_if_asked(loaded: Fleet) -> None:
    status, out, err = loaded("candidates", "unknown.json")
    assert (status, out) == (2, "")
    assert "the snapshot carries no identity; --allow-unknown takes it" in err
    assert loaded("candidates", "--allow-unknown", "unknown.json")[0] == 0
    status, _, err = loaded("load-snapshots", "s=unknown.json")
    assert status == 2
    assert "it fits everywhere: leave it out" in err


def test_retire(loaded: Fleet) -> None:
    status, out, _ = loaded("retire", "w1")
    lines = [line.split() for line in out.split("\n")[:3]]
    assert (status, lines) == (1, [["snapshot", "workers", "left"], ["s1", "1", "0"], ["s2", "3", "2"]])
    assert out.endswith(
        "1 of 3 snapshots would be stranded\n1 more can be restored by no worker even now\n"
    )
    status, out, _ = loaded("retire", "--json", "w2", "w3")
    assert (status, json.loads(out)) == (
        0,
        {
            "snapshots": 3,
            "alreadyLost": 1,
            "stranded": 0,
            "affected": [{"snapshot": "s2", "workers": 3, "workersLeft": 1}],
        },
    )


def test_retire_says_so_where_nothing_depends_on_a_worker(fleet: Fleet) -> None:
    fleet("load", "w1=rich.json")
    assert fleet("retire", "w1") == (0, "0 of 0 snapshots would be stranded\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("retire", "w1", "w-1"), "WORKER: 'w-1' is not in the fleet; check the name", id="misspelt"
        ),
        pytest.param(
            ("load", "w=rich.json", "w=plain.json"),
            "NAME: 'w' is given 2 times; name each but once",
            id="twice",
        ),
        pytest.param(
            ("load-snapshots", "s=rich.json", "s=rich.json"), "'s' is given 2 times", id="snapshot twice"
        ),
    ],
)
def test_mistakes_are_named(loaded: Fleet, arguments: tuple[str, ...], message: str) -> None:
    status, out, err = loaded(*arguments)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("s3cret", "--db: this is no database URL; such as sqlite:///fleet.db", id="no URL"),
        pytest.param("oracle9://u:s3cret@h/d", "--db: this is no database URL", id="no such engine"),
        pytest.param("mssql+pymssql://u:s3cret@h/d", "u:***@h/d needs the driver pymssql", id="no driver"),
        pytest.param(
            "postgresql+psycopg://u:s3cret@127.0.0.1:1/d",
            "postgresql+psycopg://u:***@127.0.0.1:1/d: ",
            id="no server",
        ),
        pytest.param("sqlite:////no/such/folder/f.db", "unable to open database file", id="no folder"),
    ],
)
def test_a_database_that_cannot_be_opened(fleet: Fleet, url: str, message: str) -> None:
    status, out, err = fleet("retire", "w1", db=url)
    assert (status, out) == (2, "")
    assert message in err
    assert "s3cret" not in err


def test_another_programs_database_is_refused(fleet: Fleet) -> None:
    url = "sqlite:///other.db"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE snapshot (id INTEGER, taken TEXT)"))
    engine.dispose()
    status, _, err = fleet("load", "w1=rich.json", db=url)
    assert status == 2
    assert "an older or another program's schema" in err


def test_it_says_how_to_install_sqlalchemy(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "substrate_compat.cli.database", raising=False)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    status, _, err = fleet("load", "rich.json")
    assert status == 2
    assert "sqlalchemy is missing; install it with: pip install 'substrate-compat[sql]'" in err
