"""What a worker offers as JSON is read strictly; what was written is read again; the file is whole."""

import json
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoiling import Json, Spoil, drop, fault, put
from strategies import attributes, worker_runtimes
from substrate_compat.errors import FileError, InputError
from substrate_compat.identity import (
    ARCHITECTURE,
    CPU_FEATURES,
    MAX_VALUE,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
)
from substrate_compat.match import Reason, explain_worker
from substrate_compat.strictjson import MAX_BYTES
from substrate_compat.wire import (
    dumps_runtimes,
    dumps_worker,
    loads_runtimes,
    loads_worker,
    make_converter,
    read_runtimes,
    write_runtimes,
)

DIGESTS = {letter: "sha256:" + letter * 64 for letter in "abc"}
CONVERTER = make_converter()

RUNTIMES: Json = {
    "defaultRuntime": {
        "architecture": "amd64",
        "cpu_features": "3",
        "sandbox_runtime_hash": DIGESTS["a"],
    },
    "restorableRuntimes": [
        {"architecture": "amd64", "cpu_features": "1", "sandbox_runtime_hash": DIGESTS["b"]},
        {"sandbox_runtime_hash": DIGESTS["c"]},
    ],
}
SECOND = ("restorableRuntimes", 1)


def runtime(**given: str) -> SandboxRuntime:
    return SandboxRuntime("gvisor", VersionedSandboxCompat.of(given))


WORKER = WorkerRuntimes(
    runtime(architecture="amd64", cpu_features="3", sandbox_runtime_hash=DIGESTS["a"]),
    (
        runtime(architecture="amd64", cpu_features="1", sandbox_runtime_hash=DIGESTS["b"]),
        runtime(sandbox_runtime_hash=DIGESTS["c"]),
    ),
)


def test_runtimes_are_written_as_documented() -> None:
    assert dumps_runtimes(WORKER) == json.dumps(RUNTIMES, indent=2, sort_keys=True) + "\n"


def test_a_runtimes_file_does_not_list_what_is_not_there() -> None:
    alone = WorkerRuntimes(WORKER.default_runtime)
    assert "restorable" not in dumps_runtimes(alone, CONVERTER)
    assert loads_runtimes(dumps_runtimes(alone), "gvisor", CONVERTER) == alone


def test_runtimes_are_read() -> None:
    assert loads_runtimes(json.dumps(RUNTIMES), "gvisor") == WORKER
    assert loads_runtimes(json.dumps(RUNTIMES).encode(), "gvisor", CONVERTER) == WORKER


def test_an_older_file_of_runtime_hashes_alone_is_read_and_lacks_what_a_snapshot_needs() -> None:
    older = loads_runtimes(json.dumps({"defaultRuntime": {"sandbox_runtime_hash": DIGESTS["a"]}}), "gvisor")
    (verdict,) = explain_worker(older, WORKER.default_runtime).verdicts
    assert [(each.reason, each.key) for each in verdict.mismatches] == [
        (Reason.MISSING_KEY, "architecture"),
        (Reason.MISSING_KEY, "cpu_features"),
    ]
    assert explain_worker(older, runtime(sandbox_runtime_hash=DIGESTS["a"])).compatible


def respelled(old: str, new: str) -> Spoil:
    """What writes a value and then replaces a part of the text."""
    return lambda value: json.dumps(value).replace(old, new, 1)


REFUSED_RUNTIMES = [
    pytest.param(respelled("{", "\ufeff{"), "$", "byte order mark", id="byte-order-mark"),
    pytest.param(respelled('"3"', "NaN"), "$.defaultRuntime.cpu_features", "NaN", id="nan"),
    pytest.param(
        respelled('"3"', "9" * 5_000), "$.defaultRuntime.cpu_features", "a number where", id="huge"
    ),
    pytest.param(respelled('"3"', "[" * 64 + "]" * 64), "$", "nested too deeply", id="deep"),
    pytest.param(
        respelled('"cpu_features": "1"', '"cpu_features": "1", "cpu_features": "1"'),
        "$.restorableRuntimes[0].cpu_features",
        "twice",
        id="key-twice",
    ),
    pytest.param(
        respelled('"restorableRuntimes"', '"defaultRuntime"'),
        "$.defaultRuntime",
        "twice",
        id="top-key-twice",
    ),
    pytest.param(put(to=[]), "$", "a list where an object", id="a-list"),
    pytest.param(put("more", to="1"), "$.more", "not a known key", id="unknown-key"),
    pytest.param(put("default_runtime", to={}), "$.default_runtime", "not a known key", id="snake-case"),
    pytest.param(drop(key="defaultRuntime"), "$.defaultRuntime", "missing", id="no-default"),
    pytest.param(put("defaultRuntime", to=None), "$.defaultRuntime", "null where", id="null-default"),
    pytest.param(put("defaultRuntime", to={}), "$.defaultRuntime", "0 attributes", id="empty-default"),
    pytest.param(
        put("restorableRuntimes", to={}), "$.restorableRuntimes", "an object where a list", id="object"
    ),
    pytest.param(put("restorableRuntimes", to=None), "$.restorableRuntimes", "null where", id="null-list"),
    pytest.param(put("restorableRuntimes", to="ab"), "$.restorableRuntimes", "a string where", id="string"),
    pytest.param(
        put(*SECOND, to=["a"]), "$.restorableRuntimes[1]", "a list where", id="list-for-a-runtime"
    ),
    pytest.param(put(*SECOND, "x", to=5), "$.restorableRuntimes[1].x", "a number where", id="number"),
    pytest.param(put(*SECOND, "x", to=None), "$.restorableRuntimes[1].x", "null where", id="null"),
    pytest.param(put(*SECOND, "x", to=["a"]), "$.restorableRuntimes[1].x", "a list where", id="list"),
    pytest.param(put(*SECOND, "x", to=""), "$.restorableRuntimes[1].x", "0 characters", id="empty-value"),
    pytest.param(put(*SECOND, "x", to="\udfff"), "$.restorableRuntimes[1].x", "surrogate", id="half"),
    pytest.param(
        put(*SECOND, "\udfff", to="x"),
        r"$.restorableRuntimes[1]['\udfff']",
        "surrogate",
        id="half-in-a-key",
    ),
    pytest.param(put(*SECOND, "", to="x"), "$.restorableRuntimes[1]['']", "0 characters", id="empty-key"),
    pytest.param(
        put(*SECOND, CPU_FEATURES, to="F"),
        "$.restorableRuntimes[1].architecture",
        "missing",
        id="no-architecture",
    ),
    pytest.param(
        put("restorableRuntimes", 0, CPU_FEATURES, to="F"),
        "$.restorableRuntimes[0].cpu_features",
        "not a mask",
        id="no-mask",
    ),
    pytest.param(
        put("defaultRuntime", CPU_FEATURES, to=f"{1 << 85:x}"),
        "$.defaultRuntime.cpu_features",
        "bit 85 has no name",
        id="unknown-bit",
    ),
    pytest.param(
        put("defaultRuntime", ARCHITECTURE, to="riscv64"),
        "$.defaultRuntime.architecture",
        "not known",
        id="unknown-architecture",
    ),
    pytest.param(
        put("restorableRuntimes", to=[{"x": "1"}, {"y": "1"}, {"x": "1"}]),
        "$.restorableRuntimes[2]",
        "the same runtime as $.restorableRuntimes[0]",
        id="listed-twice",
    ),
    pytest.param(
        put("restorableRuntimes", to=[{"x": str(at)} for at in range(33)]),
        "$.restorableRuntimes",
        "33 runtimes; 32 are the most",
        id="33-restorable",
    ),
]


@pytest.mark.parametrize(("spoil", "subject", "problem"), REFUSED_RUNTIMES)
def test_runtimes_are_refused(tmp_path: Path, spoil: Spoil, subject: str, problem: str) -> None:
    text = spoil(RUNTIMES)
    error = fault(lambda: loads_runtimes(text, "gvisor", CONVERTER))
    assert (error.subject, problem in error.problem) == (subject, True), str(error)
    (tmp_path / "file").write_text(text)
    of_file = fault(lambda: read_runtimes(tmp_path / "file", "gvisor", CONVERTER))
    assert of_file.subject == f"{tmp_path / 'file'}: {subject}"


def test_runtimes_cut_off_anywhere_are_refused() -> None:
    data = dumps_runtimes(WORKER).encode()
    for end in range(len(data) - 1):
        assert fault(partial(loads_runtimes, data[:end], "gvisor", CONVERTER)).subject == "$"
    assert loads_runtimes(data[:-1], "gvisor", CONVERTER) == WORKER


def test_runtimes_of_no_class_are_refused() -> None:
    assert fault(lambda: loads_runtimes(json.dumps(RUNTIMES), "")).subject == "$.sandboxClass"


def listed(compat: VersionedSandboxCompat) -> SandboxRuntime:
    """The part of an identity that a runtimes file can carry."""
    values = {**dict(compat.attributes), "z": "1"}
    if compat.features is None:
        values.pop(CPU_FEATURES, None)
    return SandboxRuntime("gvisor", VersionedSandboxCompat.of(values))


listed_runtimes = st.builds(VersionedSandboxCompat.of, attributes()).map(listed)
listed_workers = worker_runtimes(listed_runtimes)


@given(listed_workers)
def test_runtimes_that_were_written_are_read_again(runtimes: WorkerRuntimes) -> None:
    text = dumps_runtimes(runtimes, CONVERTER)
    assert loads_runtimes(text, "gvisor", CONVERTER) == runtimes
    assert loads_runtimes(text.encode(), "gvisor", CONVERTER) == runtimes
    assert loads_worker(dumps_worker("w", runtimes, CONVERTER), CONVERTER) == ("w", runtimes)


@given(listed_workers, st.booleans(), st.sampled_from([None, 0, 3]), st.randoms())
def test_runtimes_written_in_another_way_are_the_same_and_are_written_in_the_one_way(
    runtimes: WorkerRuntimes, escaped: bool, indent: int | None, order: Random
) -> None:
    def shuffled(members: dict[str, str]) -> dict[str, str]:
        keys = [*members]
        order.shuffle(keys)
        return {key: members[key] for key in keys}

    text = dumps_runtimes(runtimes, CONVERTER)
    another = json.dumps(json.loads(text, object_hook=shuffled), ensure_ascii=escaped, indent=indent)
    assert dumps_runtimes(loads_runtimes(another, "gvisor", CONVERTER), CONVERTER) == text


@given(
    st.integers(0, 400), st.sampled_from('{}[],:"ab0F\\\n') | st.characters(codec="utf-8"), st.booleans()
)
def test_runtimes_with_a_character_changed_are_refused_or_written_again(
    at: int, character: str, inserted: bool
) -> None:
    text = dumps_runtimes(WORKER)
    changed_text = text[:at] + character + text[at + (not inserted) :]
    try:
        runtimes = loads_runtimes(changed_text, "gvisor", CONVERTER)
    except InputError:
        return
    assert loads_runtimes(dumps_runtimes(runtimes, CONVERTER), "gvisor", CONVERTER) == runtimes


def large(count: int) -> tuple[WorkerRuntimes, str]:
    """Runtimes with `count` attributes of about 1 KiB each, and their shortest text."""
    value = "\U00010000" * MAX_VALUE
    each = [
        {f"{at:04}": value for at in range(start, min(start + 31, count))} for start in range(0, count, 31)
    ]
    default, *restorable = each
    text = json.dumps(
        {"defaultRuntime": default, "restorableRuntimes": restorable},
        separators=(",", ":"),
        ensure_ascii=False,
    )
    default_runtime, *others = (runtime(**values) for values in each)
    return WorkerRuntimes(default_runtime, tuple(others)), text


def test_runtimes_of_almost_one_mib_are_written_and_read() -> None:
    runtimes, shortest = large(1005)
    assert loads_runtimes(dumps_runtimes(runtimes, CONVERTER), "gvisor", CONVERTER) == runtimes
    assert loads_runtimes(shortest, "gvisor", CONVERTER) == runtimes
    assert loads_worker(dumps_worker("w", runtimes, CONVERTER), CONVERTER) == ("w", runtimes)


def test_runtimes_that_take_more_than_one_mib_are_neither_written_nor_read() -> None:
    runtimes, shortest = large(1012)
    assert len(shortest.encode()) < MAX_BYTES
    for do in (
        lambda: dumps_runtimes(runtimes, CONVERTER),
        lambda: loads_runtimes(shortest, "gvisor", CONVERTER),
        lambda: dumps_worker("w", large(1020)[0], CONVERTER),
    ):
        assert fault(do).problem == "longer than 1048576 bytes"


@pytest.mark.parametrize(
    ("unlisted", "subject", "problem"),
    [
        pytest.param(
            SandboxRuntime("gvisor", VersionedSandboxCompat.of({"x": "1"}, "v2")), "", "'v2'", id="schema"
        ),
        pytest.param(runtime(cpu_features="1"), ".architecture", "missing", id="no-architecture"),
        pytest.param(
            runtime(cpu_features="F", architecture="arm64"), ".cpu_features", "not a mask", id="no-mask"
        ),
    ],
)
def test_runtimes_that_could_not_be_read_again_are_not_written(
    unlisted: SandboxRuntime, subject: str, problem: str
) -> None:
    for runtimes, path in (
        (WorkerRuntimes(unlisted), "$.defaultRuntime"),
        (WorkerRuntimes(runtime(x="2"), (runtime(x="3"), unlisted)), "$.restorableRuntimes[1]"),
    ):
        for write in (dumps_runtimes, lambda each: dumps_worker("w", each)):
            error = fault(partial(write, runtimes))
            assert (error.subject, problem in error.problem) == (path + subject, True), str(error)


def test_a_runtimes_file_is_written_once_and_read(tmp_path: Path) -> None:
    file = tmp_path / "sandbox-runtimes.json"
    assert write_runtimes(file, WORKER)
    before = file.stat()
    assert not write_runtimes(str(file), WORKER, CONVERTER)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert file.read_text() == dumps_runtimes(WORKER)
    assert read_runtimes(file, "gvisor") == read_runtimes(str(file), "gvisor", CONVERTER) == WORKER
    assert write_runtimes(file, WorkerRuntimes(WORKER.default_runtime))
    assert read_runtimes(file, "gvisor") == WorkerRuntimes(WORKER.default_runtime)


def test_a_missing_runtimes_file_is_told_apart_from_a_bad_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_runtimes(tmp_path / "file", "gvisor")
    with pytest.raises(FileError):
        read_runtimes(tmp_path, "gvisor")
    (tmp_path / "file").write_bytes(dumps_runtimes(WORKER).encode("utf-16"))
    assert "not UTF-8" in fault(lambda: read_runtimes(tmp_path / "file", "gvisor")).problem
    (tmp_path / "file").write_bytes(b" " * (MAX_BYTES + 1))
    assert fault(lambda: read_runtimes(tmp_path / "file", "gvisor")).problem == "longer than 1048576 bytes"


LINE: Json = {"worker": "w1", "sandboxClass": "gvisor", **json.loads(json.dumps(RUNTIMES))}


def test_a_worker_is_written_as_one_line_and_read_again() -> None:
    line = dumps_worker("w1", WORKER)
    assert line == json.dumps(LINE, sort_keys=True, separators=(",", ":")) + "\n"
    assert loads_worker(line) == loads_worker(json.dumps(LINE, indent=1), CONVERTER) == ("w1", WORKER)


@pytest.mark.parametrize(
    ("spoil", "subject", "problem"),
    [
        pytest.param(put("worker", to=1), "$.worker", "a number where a string", id="number-for-a-name"),
        pytest.param(put("worker", to=""), "$.worker", "empty", id="empty-name"),
        pytest.param(drop(key="worker"), "$.worker", "missing", id="no-name"),
        pytest.param(drop(key="sandboxClass"), "$.sandboxClass", "missing", id="no-class"),
        pytest.param(put("sandboxClass", to=""), "$.sandboxClass", "0 characters", id="empty-class"),
        pytest.param(
            put("sandbox_class", to="gvisor"), "$.sandbox_class", "not a known key", id="snake-case"
        ),
        pytest.param(put("defaultRuntime", "x", to=5), "$.defaultRuntime.x", "a number where", id="number"),
        pytest.param(put(*SECOND, to={}), "$.restorableRuntimes[1]", "0 attributes", id="empty-runtime"),
    ],
)
def test_a_worker_is_refused(spoil: Spoil, subject: str, problem: str) -> None:
    error = fault(lambda: loads_worker(spoil(LINE), CONVERTER))
    assert (error.subject, problem in error.problem) == (subject, True), str(error)


@pytest.mark.parametrize("name", ["", "\ud800"], ids=["empty", "half-a-surrogate-pair"])
def test_a_worker_whose_name_cannot_be_read_is_not_written(name: str) -> None:
    assert fault(lambda: dumps_worker(name, WORKER)).subject == "$.worker"
