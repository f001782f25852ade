"""Estimators on a Dask cluster: the same models as without, even if workers die."""

import os
import signal

import numpy as np
import pytest

import slts
from slts import DataError
from slts.execution import DaskRunner, ThreadRunner
from slts.training.scans import scan_runner
from tests.data import NAMES, long_table, waves, write_long
from tests.estimators.kinds import every_kind, quick

distributed = pytest.importorskip("distributed", reason="needs the extra dask")
dask = pytest.importorskip("dask", reason="needs the extra dask")
bag = pytest.importorskip("dask.bag", reason="needs the extra dask")
frame = pytest.importorskip("dask.dataframe", reason="needs the extra dask")

pytestmark = pytest.mark.usefixtures("tables_in_parts")

N = 1200


@pytest.fixture(scope="module")
def data():
    series, codes = waves(N, n_classes=3)
    return series, NAMES[codes]


@pytest.fixture(scope="module")
def scan(data, tmp_path_factory):
    path = write_long(tmp_path_factory.mktemp("dask") / "train.parquet", *data, rows=400)
    return slts.scan_series(path, label="label")


def cluster_of(**options):
    options = {"n_workers": 2, "threads_per_worker": 1} | options
    return distributed.LocalCluster(dashboard_address=":0", silence_logs=50, **options)


@pytest.fixture(scope="module")
def threads():
    """Two workers in this process, which start quickly."""
    with cluster_of(processes=False) as running:
        yield running


@pytest.fixture
def client(threads):
    with distributed.Client(threads) as connected:
        yield connected
    # A client that a test has closed leaves its scheduler behind, for tests of other files.
    dask.config.config.pop("scheduler", None)


def learn_from_a_sample(scan):
    """A model whose coefficients are learned from all series, and landmarks from a sample."""
    model = quick(slts.LocalSLTSClassifier, n_snippets=8, n_phases=1, memory_limit="2MB").fit(scan)
    assert model.validation_.n_series < N / 2
    return model


@pytest.fixture(scope="module")
def expected(scan):
    return learn_from_a_sample(scan)


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.landmarks_.values, other.landmarks_.values)
    assert one.reports_[0].objective == pytest.approx(other.reports_[0].objective, rel=1e-9)
    for a, b in zip(one.model_.coefs, other.model_.coefs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * np.abs(b).max())
    np.testing.assert_allclose(one.probability_scale_, other.probability_scale_)


def test_a_running_client_reads_scans(client):
    runner = scan_runner(2)
    assert isinstance(runner, DaskRunner)
    assert runner.n_workers == 2
    client.close()
    assert isinstance(scan_runner(2), ThreadRunner)


@pytest.mark.slow
@every_kind
def test_models_and_outputs_are_those_without_a_cluster(kind, client, scan):
    model = quick(kind).fit(scan)
    decisions, accuracy = model.decision_function(scan), model.score(scan)
    client.close()
    other = quick(kind).fit(scan)
    np.testing.assert_array_equal(other.decision_function(scan), decisions)
    assert accuracy == other.score(scan)


def test_a_relative_path_is_the_same_for_workers(threads, expected, data, tmp_path, monkeypatch):
    write_long(tmp_path / "train.parquet", *data)
    monkeypatch.chdir(tmp_path)
    scan = slts.scan_series("train.parquet", label="label")
    # The scan may be older than the client.
    with distributed.Client(threads):
        np.testing.assert_array_equal(expected.predict(scan), expected.predict(data[0]))
    dask.config.config.pop("scheduler", None)


# -- workers in other processes


class Assassin(distributed.SchedulerPlugin):
    """Kills the workers that receive the third task of each name."""

    def __init__(self, cluster, names):
        self.cluster, self.left = cluster, dict.fromkeys(names, 3)

    def transition(self, key, start, finish, *args, **kwargs):
        name = str(key).rpartition("-")[0]
        if finish != "processing" or name not in self.left:
            return
        self.left[name] -= 1
        if self.left[name] == 0:
            address = self.cluster.scheduler.tasks[key].processing_on.address
            (nanny,) = (n for n in self.cluster.workers.values() if n.worker_address == address)
            os.kill(nanny.pid, signal.SIGKILL)


@pytest.mark.slow
def test_killed_workers_change_nothing(scan, expected, data):
    """They are killed while series are counted, and while normal equations are summed."""
    with cluster_of() as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        pids = set(DaskRunner(client).map(lambda part, shared, own: os.getpid(), range(8)))
        assert os.getpid() not in pids
        assassin = Assassin(cluster, ["slts_count", "slts_sum_part"])
        cluster.scheduler.add_plugin(assassin, name="assassin")
        model = learn_from_a_sample(scan)
        assert max(assassin.left.values()) <= 0
        assert_same_model(model, expected)
        np.testing.assert_array_equal(model.predict(scan), expected.predict(data[0]))
        np.testing.assert_allclose(
            model.predict_proba(scan), expected.predict_proba(data[0]), atol=1e-6
        )
    dask.config.config.pop("scheduler", None)


# -- collections


def pairs(data):
    return list(zip(data[0], data[1].tolist(), strict=True))


def test_a_bag_of_pairs(client, data, expected):
    scan = slts.scan_series(bag.from_sequence(pairs(data), npartitions=5).persist())
    model = learn_from_a_sample(scan)
    assert_same_model(model, expected)
    alone = slts.scan_series(bag.from_sequence(data[0], npartitions=3))
    for source in (scan, alone):
        np.testing.assert_array_equal(model.predict(source), model.predict(data[0]))
    with pytest.raises(DataError, match="partition 0 has no labels"):
        model.fit(alone)


def test_empty_partitions(client, data):
    collection = bag.from_sequence(pairs(data), npartitions=6)
    # Series of one class are missing in some partitions, and all series in others.
    kept = collection.filter(lambda pair: pair[1] != "low")
    both = bag.concat([kept, bag.from_sequence([], npartitions=1), collection])
    model = learn_from_a_sample(slts.scan_series(both))
    assert set(model.classes_) == set(NAMES)
    assert model.n_series_in_ == N + N * 2 // 3


def test_a_series_in_two_partitions(client, data):
    table = long_table(*data).to_pandas()
    cut = int(np.flatnonzero(table["t"] == 3)[50])
    parts = [frame.from_pandas(t, npartitions=1, sort=False) for t in (table[:cut], table[cut:])]
    scan = slts.scan_series(frame.concat(parts), id="id", time="t", label="label")
    with pytest.raises(DataError, match="Series 50 appears in both"):
        quick(slts.BBSClassifier).fit(scan)
