"""Which snapshots would be lost if some workers went away, asked on Apache Spark.

The tables are folders of Parquet with the columns of `substrate_compat.tables`: `runtime`,
`runtime_attribute`, `worker_runtime` and `snapshot`. The few distinct identities come to the driver, where
the library matches them; what restores what goes back to the engine as a broadcast, and the engine joins
and counts. The output has a row for each snapshot: how many workers restore it now, and how many would if
the workers in the file were gone.

    python examples/retire_spark.py --tables fleet/ --going workers-to-go.txt --output counts/

Local mode without further ado; on a cluster, the same file with spark-submit.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from substrate_compat.identity import SandboxRuntime
from substrate_compat.pairs import restore_pairs
from substrate_compat.rows import runtime_from_rows


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", required=True, metavar="FOLDER")
    parser.add_argument(
        "--going", required=True, type=Path, metavar="FILE", help="a worker id on each line"
    )
    parser.add_argument("--output", required=True, metavar="FOLDER")
    options = parser.parse_args(arguments)
    going = options.going.read_text().split("\n")
    spark = SparkSession.builder.appName("retire").getOrCreate()
    start = time.monotonic()
    try:
        counts = stranded(spark, options.tables, [worker_id for worker_id in going if worker_id])
        counts.write.parquet(options.output)
        seconds = time.monotonic() - start
        written = spark.read.parquet(options.output)
        lost = written.where("workers > 0 AND workers_left = 0").count()
        print(f"{written.count()} snapshots, {lost} of them stranded; counted in {seconds:.1f} s")
    finally:
        spark.stop()


def stranded(spark: SparkSession, tables: str, workers_to_go: Sequence[str]) -> DataFrame:
    """Each snapshot with the number of workers that restore it now, and without `workers_to_go`."""
    workers = spark.read.parquet(f"{tables}/worker_runtime")
    snapshots = spark.read.parquet(f"{tables}/snapshot")
    runtimes = read_runtimes(spark, tables)
    offered = {row.runtime_key for row in workers.select("runtime_key").distinct().collect()}

    # Numbers for the keys, so that the rows which are counted are small.
    numbers = {key: number for number, key in enumerate(runtimes)}
    restored = defaultdict(list)
    for worker_key, snapshot_key in restore_pairs({key: runtimes[key] for key in offered}, runtimes):
        restored[worker_key].append(numbers[snapshot_key])
    matching = spark.createDataFrame([*restored.items()], "runtime_key string, restores array<int>")
    keys = spark.createDataFrame([*numbers.items()], "runtime_key string, number int")
    going = spark.createDataFrame([(worker_id,) for worker_id in workers_to_go], "worker_id string")

    # Workers that offer the same are counted once, and asked once.
    each = workers.groupBy("worker_id").agg(F.array_sort(F.collect_set("runtime_key")).alias("offer"))
    alike = (
        each.join(F.broadcast(going.withColumn("goes", F.lit(1))), "worker_id", "left")
        .groupBy("offer")
        .agg(F.count("*").alias("workers"), F.count_if(F.col("goes").isNull()).alias("workers_left"))
    )
    counts = (
        alike.withColumn("runtime_key", F.explode("offer"))
        .join(F.broadcast(matching), "runtime_key")
        .withColumn("number", F.explode("restores"))
        .select("offer", "workers", "workers_left", "number")
        .distinct()
        .groupBy("number")
        .agg(F.sum("workers").alias("workers"), F.sum("workers_left").alias("workers_left"))
        .join(F.broadcast(keys), "number")
        .drop("number")
    )
    return snapshots.join(F.broadcast(counts), "runtime_key", "left").select(
        "snapshot_id",
        F.coalesce("workers", F.lit(0)).alias("workers"),
        F.coalesce("workers_left", F.lit(0)).alias("workers_left"),
    )


def read_runtimes(spark: SparkSession, tables: str) -> Mapping[str, SandboxRuntime]:
    """The distinct identities by key."""
    attributes: dict[str, dict[str, str]] = defaultdict(dict)
    for row in spark.read.parquet(f"{tables}/runtime_attribute").collect():
        attributes[row["runtime_key"]][row["key"]] = row["value"]
    return {
        row["runtime_key"]: runtime_from_rows(row.asDict(), attributes[row["runtime_key"]])
        for row in spark.read.parquet(f"{tables}/runtime").collect()
    }


if __name__ == "__main__":
    main(sys.argv[1:])
