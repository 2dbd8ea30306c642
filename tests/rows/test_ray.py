"""Ray datasets on a real local Ray: as NumPy, whatever the blocks, and when workers die."""

import logging
import os
from pathlib import Path

import numpy as np
import pytest
import tables_on_clusters as tables
from numpy.testing import assert_allclose

import mercer

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("ray.data", reason="the extra 'ray' is not installed")


pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(
        num_cpus=2,
        object_store_memory=200_000_000,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": {"PYTHONPATH": str(Path(mercer.__file__).parents[1])}},
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def made(parts):
    return ray.data.from_arrow([pa.Table.from_pandas(p, preserve_index=False) for p in parts])


def shuffled(dataset):
    """All rows here, after they were sent to other blocks."""
    return dataset.random_shuffle(seed=1).to_pandas()


@tables.DTYPES
def test_a_ray_dataset_is_fitted_and_scored_as_the_array(dtype):
    tables.check_scores(made, shuffled, dtype)


def test_every_other_estimator_takes_a_ray_dataset():
    tables.check_others(made, shuffled)


@pytest.mark.slow
def test_weights_and_targets_are_columns_of_a_ray_dataset():
    tables.check_columns(made, shuffled)


@pytest.mark.slow
def test_bad_rows_of_a_ray_dataset_are_named():
    tables.check_bad_rows(made, shuffled, lambda part, parts: f"A block of {len(parts[part])} rows")


@pytest.mark.slow
def test_columns_of_a_ray_dataset_are_chosen_and_keys_told_of():
    tables.check_choice(made)


def test_what_a_ray_dataset_cannot_do_is_refused():
    tables.check_refusals(made)


def test_a_column_of_tensors_is_whole_rows():
    dataset = ray.data.from_numpy([tables.X[:100], tables.X[100:]])
    here, there = tables.model().fit(tables.X), tables.model().fit(dataset)
    assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-12)
    scores = np.sort(np.abs(there.transform(dataset).to_pandas()["kernelpca0"]))
    assert_allclose(scores, np.sort(np.abs(here.transform(tables.X)[:, 0])), atol=1e-9)


@pytest.mark.slow
def test_two_hundred_blocks_are_added_in_a_tree():
    dataset = made(tables.pieces(tables.drawn())).drop_columns(["text"]).repartition(200)
    here, there = tables.model().fit(tables.X), tables.model().fit(dataset)
    assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-12)


@pytest.mark.slow
def test_a_fit_survives_a_killed_worker(tmp_path):
    marker = str(tmp_path / "marker")

    def deadly(table):
        if not os.path.exists(marker):
            Path(marker).touch()
            os._exit(1)
        return table

    dataset = made(tables.pieces(tables.drawn()))
    dataset = dataset.map_batches(deadly, batch_format="pyarrow")
    dataset.schema()  # known before a worker dies
    found = tables.model().fit(dataset).eigenvalues_
    assert os.path.exists(marker)
    assert_allclose(found, tables.model().fit(tables.X).eigenvalues_, rtol=1e-12)
