"""Spark frames on a real local Spark: as NumPy, whatever the partitions, and when workers die."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tables_on_clusters as tables
from numpy.testing import assert_allclose

import mercer
from mercer.bases import Landmarks

pyspark = pytest.importorskip("pyspark", reason="the extra 'spark' is not installed")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

SparkSession = pytest.importorskip("pyspark.sql").SparkSession
kinds_of = pytest.importorskip("pyspark.sql.types")

# What pyspark itself does with pandas, sockets and Python of these releases.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("spark"),
]
SOURCE = str(Path(mercer.__file__).parents[1])
TYPES = {
    "float64": kinds_of.DoubleType(),
    "float32": kinds_of.FloatType(),
    "int64": kinds_of.LongType(),
}


@pytest.fixture(scope="module")
def spark():
    before = {name: os.environ.get(name) for name in ("PYSPARK_PYTHON", "PYTHONPATH")}
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SOURCE, before["PYTHONPATH"]]))
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]").config(map=settings)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    for name, value in before.items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="module")
def made(spark):
    def frame_of(parts):
        kinds = parts[0].dtypes.items()
        fields = [
            kinds_of.StructField(name, TYPES.get(str(kind), kinds_of.StringType()))
            for name, kind in kinds
        ]
        records = [[tuple(row) for row in part.astype(object).values.tolist()] for part in parts]
        rows = spark.sparkContext.parallelize(records, len(records)).flatMap(list)
        return spark.createDataFrame(rows, kinds_of.StructType(fields)).cache()

    return frame_of


def shuffled(frame):
    """All rows here, after they were sent to other partitions."""
    return frame.repartition(2, "text").toPandas()


@tables.DTYPES
def test_a_spark_frame_is_fitted_and_scored_as_the_array(made, dtype):
    tables.check_scores(made, shuffled, dtype)


def test_every_other_estimator_takes_a_spark_frame(made):
    tables.check_others(made, shuffled)


@pytest.mark.slow
def test_weights_and_targets_are_columns_of_a_spark_frame(made):
    tables.check_columns(made, shuffled)


@pytest.mark.slow
def test_bad_rows_of_a_spark_frame_are_named(made):
    tables.check_bad_rows(made, shuffled, lambda part, parts: r"Partition \d+")


@pytest.mark.slow
def test_columns_of_a_spark_frame_are_chosen_and_keys_told_of(made):
    tables.check_choice(made)


def test_what_a_spark_frame_cannot_do_is_refused(made, spark):
    tables.check_refusals(made)
    with pytest.raises(TypeError, match=r"X is a RDD of Spark.*spark.createDataFrame\(rdd\)"):
        tables.model().fit(spark.sparkContext.parallelize([[1.0, 2.0]]))


def test_a_column_of_arrays_is_whole_rows(made):
    frame = made([tables.drawn()]).selectExpr("array(a, b, `weird ``name```, d) as v")
    here, there = tables.model().fit(tables.X), tables.model().fit(frame)
    assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-12)
    ragged = frame.selectExpr("case when v[0] > 3 then v else slice(v, 1, 2) end as v")
    with pytest.raises(ValueError, match=r"holds \d numbers in column 'v'"):
        tables.model().fit(ragged)


@pytest.mark.slow
def test_two_hundred_partitions_are_added_in_a_tree(spark):
    frame = spark.range(0, 4000, 1, 200).selectExpr("sin(id) as a", "cos(id * id) as b")
    X = np.stack([np.sin(np.arange(4000.0)), np.cos(np.arange(4000.0) ** 2)], axis=1)
    model = mercer.KernelPCA(2, kernel="rbf", gamma=0.5, basis=Landmarks(points=X[:20]))
    wanted, taken, collect = model.fit(X).eigenvalues_, [], type(frame).collect

    def counted(parts):
        rows = collect(parts)
        taken.append(len(rows))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(frame), "collect", counted)
        assert_allclose(model.fit(frame).eigenvalues_, wanted, rtol=1e-9)
    assert taken and max(taken) <= 8


LOST = """
import os, signal, sys
import numpy as np
from pyspark.sql import SparkSession
from mercer import KernelPCA
from mercer.bases import Landmarks

spark = (
    SparkSession.builder.master(sys.argv[2]).config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.executor.memory", "700m").getOrCreate()
)
marker = sys.argv[1]

def deadly(batches):
    from pyspark import TaskContext
    if TaskContext.get().partitionId() == 3 and not os.path.exists(marker):
        open(marker, "w").close()
        daemon = os.getppid()
        with open(f"/proc/{daemon}/stat") as file:
            executor = int(file.read().rsplit(")", 1)[1].split()[1])
        os.kill(executor if sys.argv[2] != "local[2,4]" else os.getpid(), signal.SIGKILL)
    yield from batches

plain = spark.range(0, 800, 1, 6).selectExpr("sin(id) as a", "cos(id * id) as b")
frame = plain.mapInArrow(deadly, plain.schema)
number = np.arange(800.0)
X = np.stack([np.sin(number), np.cos(number**2)], axis=1)
model = KernelPCA(2, kernel="rbf", gamma=0.5, basis=Landmarks(points=X[:20]))
found = model.fit(frame).eigenvalues_
assert os.path.exists(marker), "nothing was killed"
np.testing.assert_allclose(found, model.fit(X).eigenvalues_, rtol=1e-9)
spark.stop()
print("the fit went on")
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the executor is found by /proc")
@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "local[2,4]"])
def test_a_fit_survives_a_killed_executor_or_worker(master, tmp_path):
    assert "the fit went on" in printed(LOST, str(tmp_path / "marker"), master)


CONNECT = """
import numpy as np
from pyspark.sql import SparkSession
from mercer import KernelPCA
from mercer.bases import Landmarks
from mercer.files import open_source

spark = SparkSession.builder.remote("local[2]").getOrCreate()
number = np.arange(800.0)
X = np.stack([np.sin(number), np.cos(number**2)], axis=1)
frame = spark.range(0, 800, 1, 12).selectExpr("id", "sin(id) as a", "cos(id * id) as b")
assert not hasattr(frame, "_jdf"), type(frame)
model = KernelPCA(2, kernel="rbf", gamma=0.5, basis=Landmarks(points=X[:20])).fit(X)
wanted, scores = model.eigenvalues_, np.abs(model.transform(X))
model.fit(open_source(frame, columns=["a", "b"]))
np.testing.assert_allclose(model.eigenvalues_, wanted, rtol=1e-9)
found = model.transform(frame).toPandas().sort_values("id")[["kernelpca0", "kernelpca1"]]
np.testing.assert_allclose(np.abs(found.to_numpy()), scores, atol=1e-9)
bad = frame.selectExpr("id", "if(id = 700, double('nan'), a) as a", "b")
for call in (model.fit, lambda rows: model.transform(rows.table).toPandas()):
    try:
        call(open_source(bad, columns=["a", "b"]))
    except Exception as error:
        assert "Partition 10 of X: row" in str(error) and "in column a;" in str(error), error
        print("named")
spark.stop()
"""


@pytest.mark.slow
def test_spark_connect_is_served():
    pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")
    if not list(Path(pyspark.__file__).parent.glob("jars/spark-connect_*")):
        pytest.skip("this pyspark has no server of Spark Connect")
    assert printed(CONNECT).count("named") == 2


def printed(program, *words):
    """What a program prints that has a Spark of its own."""
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([SOURCE, str(Path(pyspark.__file__).parents[1])]),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
    }
    command = [sys.executable, "-c", program, *words]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout
