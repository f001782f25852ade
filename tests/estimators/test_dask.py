"""Estimators on a Dask cluster: the same models as without, even if workers die."""

import os
import signal

import numpy as np
import pytest

import slts
from slts import DataError
from slts.execution import DaskRunner, ThreadRunner
from slts.training import landmark_fit, local_fit
from slts.training.sampling import SampleSize
from slts.training.scans import ArraySource, task_runner
from tests.estimators.kinds import every, quick
from tests.estimators.scan_data import CHANNELS, draw, long_table, write_long

distributed = pytest.importorskip("distributed", reason="needs the extra dask")
dask = pytest.importorskip("dask", reason="needs the extra dask")
bag = pytest.importorskip("dask.bag", reason="needs the extra dask")
frame = pytest.importorskip("dask.dataframe", reason="needs the extra dask")

pytestmark = pytest.mark.usefixtures("tables_in_parts")

N = 150


@pytest.fixture(scope="module")
def data():
    return draw(np.random.default_rng(11), N)


@pytest.fixture(scope="module")
def path(data, tmp_path_factory):
    return write_long(tmp_path_factory.mktemp("dask") / "train.parquet", *data, rows=100)


@pytest.fixture(scope="module")
def scan(path):
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


@pytest.fixture(autouse=True)
def in_parts(monkeypatch):
    """A sample of 50 series, so that alignments lie on the workers."""
    monkeypatch.setattr(landmark_fit, "_sample_size", lambda *_: SampleSize(50, np.inf, 1, 20))
    monkeypatch.setattr(landmark_fit, "_SAMPLED_PER_CLASS", 5)


def make(**options):
    return quick(slts.SLTSClassifier, n_landmarks=10, gamma=1e-2, n_jobs=2, **options)


@pytest.fixture(scope="module")
def local(scan):
    """The model of the same file without a cluster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landmark_fit, "_sample_size", lambda *_: SampleSize(50, np.inf, 1, 20))
        patch.setattr(landmark_fit, "_SAMPLED_PER_CLASS", 5)
        return make().fit(scan)


def assert_same_model(one, other):
    assert [x.tolist() for x in one.landmarks_] == [x.tolist() for x in other.landmarks_]
    for a, b in zip(one.reports_, other.reports_, strict=True):
        assert a.converged
        assert a.objective == pytest.approx(b.objective, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(one.metrics_, other.metrics_, atol=1e-6)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    assert one.probability_scale_ == pytest.approx(other.probability_scale_)


# -- the runner


def test_a_running_client_reads_scans_but_not_arrays(client, scan, data):
    runner = task_runner(2, scan)
    assert isinstance(runner, DaskRunner)
    assert runner.n_workers == 2
    arrays = ArraySource(slts.as_series(data[0]), np.zeros(N))
    assert isinstance(task_runner(2, arrays), ThreadRunner)
    client.close()
    assert isinstance(task_runner(2, scan), ThreadRunner)


# -- models


@pytest.mark.slow
@every([slts.BBSClassifier, slts.SLTSClassifierCV, slts.LocalSLTSClassifier])
def test_other_models_of_a_cluster_are_the_local_ones(kind, client, scan, data):
    model = quick(kind).fit(scan)
    client.close()
    other = quick(kind).fit(scan)
    assert [x.tolist() for x in model.landmarks_] == [x.tolist() for x in other.landmarks_]
    np.testing.assert_array_equal(model.predict(data[0]), other.predict(data[0]))


def test_a_relative_path_is_the_same_for_workers(threads, path, local, data, monkeypatch):
    monkeypatch.chdir(path.parent)
    scan = slts.scan_series(path.name, label="label")
    # The scan may be older than the client.
    with distributed.Client(threads):
        np.testing.assert_array_equal(local.predict(scan), local.predict(data[0]))
    dask.config.config.pop("scheduler", None)


def test_certificates(client, path, data):
    model = make().fit(data[0][:50], data[1][:50])
    rest = write_long(path.parent / "rest.parquet", data[0][50:], data[1][50:])
    expected = slts.certify(model, data[0][50:], data[1][50:])
    assert slts.certify(model, slts.scan_series(rest, label="label")) == expected


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
def test_workers_in_other_processes_give_the_same_model_even_if_killed(
    scan, local, data, monkeypatch
):
    """They are killed while series are counted, and while problems are solved."""
    with cluster_of() as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        pids = set(DaskRunner(client).map(lambda part, shared, own: os.getpid(), range(8)))
        assert os.getpid() not in pids
        assassin = Assassin(cluster, ["slts_count", "slts_answer"])
        cluster.scheduler.add_plugin(assassin, name="assassin")
        model = make().fit(scan)
        assert max(assassin.left.values()) <= 0
        assert_same_model(model, local)
        np.testing.assert_array_equal(model.predict(scan), local.predict(data[0]))
        proba = local.predict_proba(data[0])
        np.testing.assert_allclose(model.predict_proba(scan), proba, atol=1e-6)
        assert model.score(scan) == local.score(*data)

        # The local classifier, while its normal equations are summed.
        monkeypatch.setattr(local_fit, "_FEWEST", 10)
        monkeypatch.setattr(local_fit, "_MOST_SAMPLED", 60)
        monkeypatch.setattr(local_fit, "_MOST", 60)
        assassin.left["slts_sum_equations"] = 3
        model = quick(slts.LocalSLTSClassifier).fit(scan)
        assert max(assassin.left.values()) <= 0
    dask.config.config.pop("scheduler", None)
    other = quick(slts.LocalSLTSClassifier).fit(scan)
    assert model.reports_[0].objective == pytest.approx(other.reports_[0].objective, rel=1e-9)
    np.testing.assert_allclose(model.snippet_coef_, other.snippet_coef_, atol=1e-8)


# -- collections


def pairs(data):
    return list(zip(data[0], data[1].tolist(), strict=True))


def test_a_bag_of_pairs(client, data, local):
    scan = slts.scan_series(bag.from_sequence(pairs(data), npartitions=5).persist())
    model = make().fit(scan)
    assert_same_model(model, local)
    expected = model.predict(data[0])
    np.testing.assert_array_equal(model.predict(scan), expected)
    alone = slts.scan_series(bag.from_sequence(data[0], npartitions=3))
    np.testing.assert_array_equal(model.predict(alone), expected)
    with pytest.raises(DataError, match=r"partition 0 has no labels"):
        make().fit(alone)


def test_empty_partitions(client, data):
    collection = bag.from_sequence(pairs(data), npartitions=6)
    # Series of one class are missing in some partitions, and all series in others.
    kept = collection.filter(lambda pair: pair[1] != "low")
    both = bag.concat([kept, bag.from_sequence([], npartitions=1), collection])
    model = quick(slts.BBSClassifier).fit(slts.scan_series(both))
    assert set(model.classes_) == {"low", "middle", "high"}


def test_a_data_frame(client, data, local):
    table = long_table(*data).to_pandas()
    collection = frame.from_pandas(table.set_index("id"), npartitions=4, sort=True)
    scan = slts.scan_series(collection, time="t", label="label", channels=list(CHANNELS))
    model = make().fit(scan)
    assert_same_model(model, local)
    np.testing.assert_array_equal(model.predict(scan), model.predict(data[0]))


def test_a_series_in_two_partitions(client, data):
    table = long_table(*data).to_pandas()
    cut = int(np.flatnonzero(table["t"] == 3)[50])
    collection = frame.concat(
        [
            frame.from_pandas(table.iloc[:cut], npartitions=1, sort=False),
            frame.from_pandas(table.iloc[cut:], npartitions=1, sort=False),
        ]
    )
    scan = slts.scan_series(collection, id="id", time="t", label="label")
    with pytest.raises(DataError, match="Series 50 appears in both"):
        make().fit(scan)
