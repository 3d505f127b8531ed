"""Spark and DuckDB count the same, row by row, from the same files."""

from pathlib import Path

import pytest
from benchmarks.retirement_data import RetirementData
from benchmarks.spark import differences, retire


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            RetirementData(1_000_000, 10_000, versions=50), id="1 M, 5,000 identities on each side"
        ),
        pytest.param(
            RetirementData(10_000_000, 100_000, versions=3), id="10 M, 300 identities on each side"
        ),
    ],
)
def test_spark_counts_as_duckdb_does(data: RetirementData, tmp_path: Path) -> None:
    going = data.write(tmp_path)
    run = retire(tmp_path, going)
    assert run.snapshots == data.snapshots
    assert 0 < run.stranded < data.snapshots
    assert differences(tmp_path, going) == (data.snapshots, 0)
    # Each row passes a few nodes, and a worker meets the identities that it restores: none meets all.
    assert sum(run.rows.values()) < 12 * data.snapshots + 1000 * data.workers
