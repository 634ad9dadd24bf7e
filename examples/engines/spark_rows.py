"""Rows of a data frame of Spark, counted where they lie: a part of the counts comes back from each partition.

python examples/engines/spark_rows.py
"""

from itertools import chain

from _table import METRICS, OPTIONS, PATH, check
from pyspark import TaskContext
from pyspark.sql import SparkSession

from assay.scoring import Partial, count, merge


def counted(batches):
    """The counts of a partition, named after it: one that comes twice is refused."""
    import pyarrow as pa

    for first in batches:  # nothing where the partition is empty
        name = f"partition {TaskContext.get().partitionId()}"
        part = count(chain([first], batches), METRICS, name, **OPTIONS)
        yield pa.record_batch({"part": [part.to_bytes()]})


spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.read.parquet(str(PATH)).repartition(4)
parts = [Partial.from_bytes(bytes(row.part)) for row in frame.mapInArrow(counted, "part binary").collect()]
check(merge(parts).report(), PATH)
spark.stop()
