"""Estimators on a Dask cluster: the same models, even where workers die."""

import asyncio
import os
import signal

import numpy as np
import pandas as pd
import pytest
from slts.estimators.streams import mapper_for

import slts
from slts import DataError
from slts.execution import DaskMapper, ThreadMapper
from tests.estimators.scan_data import CHANNELS, draw, write_long

distributed = pytest.importorskip("distributed", reason="needs the extra dask")
dask = pytest.importorskip("dask", reason="needs the extra dask")
bag = pytest.importorskip("dask.bag", reason="needs the extra dask")
frame = pytest.importorskip("dask.dataframe", reason="needs the extra dask")

N = 600


@pytest.fixture(scope="module")
def data():
    return draw(np.random.default_rng(11), N)


@pytest.fixture(scope="module")
def path(data, tmp_path_factory):
    return write_long(tmp_path_factory.mktemp("dask") / "train.parquet", *data, rows=150)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as running:
        yield running


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as connected:
        connected.wait_for_workers(2, timeout=60)
        yield connected
    # A client that a test has closed leaves its scheduler behind, for tests of other files.
    dask.config.config.pop("scheduler", None)


def make(**options):
    return slts.SLTSClassifier(10, gamma=1e-2, random_state=0, n_jobs=2, **options)


@pytest.fixture(scope="module")
def local(path):
    """The model of the same file, without a cluster."""
    return make().fit(path)


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.landmark_indices_, other.landmark_indices_)
    assert one.landmarks_ == other.landmarks_
    for a, b in zip(one.reports_, other.reports_, strict=True):
        assert a.converged
        assert a.objective == pytest.approx(b.objective, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(one.metrics_, other.metrics_, atol=1e-6)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    assert one.probability_scale_ == pytest.approx(other.probability_scale_)


def test_the_running_client_does_the_work(client):
    mapper = mapper_for(2)
    assert isinstance(mapper, DaskMapper)
    assert mapper.n_workers == 2
    pids = set(mapper.map(lambda part, common, own: os.getpid(), range(8)))
    assert os.getpid() not in pids


def test_without_a_client_threads_do_it(client):
    client.close()
    assert isinstance(mapper_for(2), ThreadMapper)


def test_results_come_in_order_and_errors_too(client):
    mapper = DaskMapper(client)
    seen = []

    def own(number):
        seen.append(number)
        return 10 * number

    found = list(mapper.map(lambda part, common, own: part + common + own, [1, 2, 3], 100, own))
    assert found == [101, 112, 123]
    assert seen == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        list(mapper.map(lambda part, common, own: 1 // part, [1, 0, 1]))
    with pytest.raises(ZeroDivisionError):
        mapper.hold(lambda part, common, own: iter([1 // part]), [1, 0], memory=0.0)


def test_held_results_stay_on_the_workers(client):
    mapper = DaskMapper(client)
    held = mapper.hold(
        lambda part, common, own: iter([(np.full(part, common),)]), [2, 3], 7.0, memory=0.0
    )
    assert all(isinstance(one, distributed.Future) for one in held)
    sums = mapper.map(lambda blocks, common, own: sum(a.sum() for (a,) in blocks), held)
    assert list(sums) == [14.0, 21.0]
    mapper.release(held)


def test_the_model_of_a_cluster_is_the_local_one(client, path, local, data):
    model = make().fit(path)
    assert_same_model(model, local)
    np.testing.assert_array_equal(model.predict(path), local.predict(data[0]))
    np.testing.assert_allclose(model.predict_proba(path), local.predict_proba(data[0]), atol=1e-6)
    assert model.score(path) == local.score(*data)


def test_a_path_from_here_is_the_same_for_workers(client, path, local, monkeypatch):
    monkeypatch.chdir(path.parent)
    assert_same_model(make().fit(path.name), local)
    assert_same_model(make().fit(slts.scan_series(path.name)), local)


def test_a_scan_may_be_older_than_the_client(cluster, path, local, data, monkeypatch):
    monkeypatch.chdir(path.parent)
    scan = slts.scan_series(path.name)
    with distributed.Client(cluster):
        np.testing.assert_array_equal(local.predict(scan), local.predict(data[0]))
    dask.config.config.pop("scheduler", None)


@pytest.mark.parametrize("make_other", [slts.BBSClassifier, slts.SLTSClassifierCV])
def test_other_models_too(client, path, make_other):
    model = make_other(8, random_state=0).fit(path)
    client.close()
    other = make_other(8, random_state=0).fit(path)
    assert_same_model(model, other)


def test_the_local_classifier_learns_from_the_same_sample(client, path, data):
    model = slts.LocalSLTSClassifier(random_state=0).fit(path)
    client.close()
    other = slts.LocalSLTSClassifier(random_state=0).fit(path)
    np.testing.assert_array_equal(model.landmark_indices_, other.landmark_indices_)
    np.testing.assert_array_equal(model.predict(data[0]), other.predict(data[0]))


def test_certificates(client, path, data):
    model = make().fit(data[0][:200], data[1][:200])
    rest = path.parent / "rest.parquet"
    write_long(rest, data[0][200:], data[1][200:])
    expected = slts.certify(model, data[0][200:], data[1][200:])
    assert slts.certify(model, rest).to_dict() == expected.to_dict()


# -- Workers that die


class Assassin(distributed.SchedulerPlugin):
    """Kills the worker that is given the n-th task of a name."""

    def __init__(self, cluster, name, count):
        self.cluster, self.name, self.left = cluster, name, count
        self.killed = None

    def transition(self, key, start, finish, *args, **kwargs):
        if finish != "processing" or not str(key).startswith(self.name) or self.killed:
            return
        self.left -= 1
        if self.left == 0:
            address = self.cluster.scheduler.tasks[key].processing_on.address
            (nanny,) = (n for n in self.cluster.workers.values() if n.worker_address == address)
            self.killed = nanny.pid
            os.kill(self.killed, signal.SIGKILL)


@pytest.mark.parametrize(
    ("name", "count"),
    [("slts_look", 3), ("slts_align_part", 3), ("slts_align_part", 20), ("slts_answer", 5)],
    ids=["counting", "aligning", "aligning again", "solving"],
)
def test_a_worker_that_is_killed_changes_nothing(cluster, client, path, local, name, count):
    assassin = Assassin(cluster, name, count)
    cluster.scheduler.add_plugin(assassin, name="assassin")
    try:
        model = make().fit(path)
    finally:
        cluster.scheduler.plugins.pop("assassin")
    assert assassin.killed is not None
    assert_same_model(model, local)
    np.testing.assert_array_equal(model.predict(path), local.predict(path))


# -- Collections


def pairs(data):
    return list(zip(data[0], data[1].tolist(), strict=True))


def test_a_bag_of_pairs(client, data):
    collection = bag.from_sequence(pairs(data), npartitions=5)
    model = make().fit(collection)
    held = make(landmarks=model.landmark_indices_).fit(*data)
    for a, b in zip(model.reports_, held.reports_, strict=True):
        assert a.objective == pytest.approx(b.objective, rel=1e-6)
    expected = model.predict(data[0])
    np.testing.assert_array_equal(model.predict(collection), expected)
    alone = bag.from_sequence(data[0], npartitions=3)
    np.testing.assert_array_equal(model.predict(alone), expected)


def test_a_bag_without_a_cluster(data):
    collection = bag.from_sequence(pairs(data), npartitions=4)
    model = make().fit(collection)
    assert model.score(collection) == model.score(*data)


def test_a_persisted_bag(client, data):
    collection = bag.from_sequence(pairs(data), npartitions=5).persist()
    fresh = bag.from_sequence(pairs(data), npartitions=5)
    assert_same_model(make().fit(collection), make().fit(fresh))


def test_empty_partitions(client, data):
    collection = bag.from_sequence(pairs(data), npartitions=6)
    # Labels of one class are missing in some partitions, and everything in others.
    kept = collection.filter(lambda pair: pair[1] != "low")
    both = bag.concat([kept, bag.from_sequence([], npartitions=1), collection])
    model = make().fit(both)
    assert set(model.classes_) == {"low", "middle", "high"}


def test_a_bag_without_labels(client, data):
    with pytest.raises(DataError, match=r"partition 0 has no labels: a Dask bag has them in pairs"):
        make().fit(bag.from_sequence(data[0], npartitions=2))


def test_labels_of_a_bag_that_cannot_be_compared(data):
    def fit(labels):
        pairs = list(zip(data[0], labels, strict=False))
        make().fit(bag.from_sequence(pairs, npartitions=2))

    with pytest.raises(DataError, match=r"partition 0: the label of element 1 is missing"):
        fit(["a", float("nan")] * 10)
    with pytest.raises(DataError, match=r"partition 0: the label of element 1 is 'b', and 1 of"):
        fit([1, "b"] * 10)
    with pytest.raises(DataError, match=r"partition 1 has labels that are text, such as 'b', and "):
        fit([1] * 10 + ["b"] * 10)


def long_frame(data):
    lengths = [x.shape[1] for x in data[0]]
    values = np.concatenate(data[0], axis=1)
    return pd.DataFrame(
        {
            "id": np.repeat(np.arange(len(lengths)), lengths),
            "t": np.concatenate([np.arange(n) for n in lengths]),
            "label": np.repeat(data[1], lengths),
            **dict(zip(CHANNELS, values, strict=True)),
        }
    )


def test_a_data_frame(client, data, local):
    table = long_frame(data).set_index("id")
    collection = frame.from_pandas(table, npartitions=4, sort=True)
    model = make().fit(collection, "label")
    held = make(landmarks=model.landmark_indices_).fit(*data)
    for a, b in zip(model.reports_, held.reports_, strict=True):
        assert a.objective == pytest.approx(b.objective, rel=1e-6)
    np.testing.assert_array_equal(model.predict(collection), model.predict(data[0]))


def test_a_series_in_two_partitions(client, data):
    table = long_frame(data)
    cut = int(np.flatnonzero(table["t"] == 3)[50])
    collection = frame.concat(
        [
            frame.from_pandas(table.iloc[:cut], npartitions=1, sort=False),
            frame.from_pandas(table.iloc[cut:], npartitions=1, sort=False),
        ]
    )
    scan = slts.scan_series(collection, id="id", time="t", label="label")
    with pytest.raises(DataError, match="series 50 comes back"):
        make().fit(scan)


def test_an_asynchronous_client_is_refused(path):
    async def fit():
        async with distributed.Client(asynchronous=True, processes=False, dashboard_address=":0"):
            make().fit(path)

    with pytest.raises(RuntimeError, match="asynchronous, and slts waits"):
        asyncio.run(fit())
    dask.config.config.pop("scheduler", None)
