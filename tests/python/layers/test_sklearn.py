"""`fovea.sklearn`: estimators that pass scikit-learn's own checks, answer what their formula says, and explain themselves."""

import pickle
import re
import warnings

import pytest
import torch

pytest.importorskip("sklearn")
np = pytest.importorskip("numpy")

from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_iris, make_moons  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from fovea.sklearn import GATClassifier, KernelClassifier, MILClassifier, NadarayaWatsonRegressor  # noqa: E402

ESTIMATORS = [
    NadarayaWatsonRegressor(), NadarayaWatsonRegressor("epanechnikov"), KernelClassifier(), MILClassifier(epochs=15, learning_rate=0.1),
    GATClassifier(epochs=15, learning_rate=0.1),
]  # fmt: skip


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_scikit_learns_own_checks_pass(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None)
    assert [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")] == []
    assert sum(r["status"] == "passed" for r in results) > 50


# ---- kernels ----


def waves(count=120, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(0, 6, size=(count, 1))
    return X, np.sin(X[:, 0]) + 0.05 * random.normal(size=count)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "silverman"])
def test_regression_is_the_weighted_mean(kernel):
    X, y = waves()
    model = NadarayaWatsonRegressor(kernel, 0.5).fit(X, np.stack([y, 2 * y], 1))
    u = np.abs(X[:7] - X.T) / 0.5
    s = np.sqrt(0.5) * u
    weights = {"gaussian": np.exp(-(u**2) / 2), "epanechnikov": np.clip(1 - u**2, 0, None), "silverman": np.exp(-s) * np.sin(s + np.pi / 4)}[kernel]
    expected = (weights / weights.sum(1, keepdims=True)) @ y
    np.testing.assert_allclose(model.predict(X[:7]), np.stack([expected, 2 * expected], 1), rtol=1e-9)


def test_the_bandwidth_is_that_of_leaving_one_out():
    X, y = waves(60)
    chosen = NadarayaWatsonRegressor().fit(X, y)

    def error(bandwidth):
        kept = [np.arange(60) != n for n in range(60)]
        return np.mean([(NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X[k], y[k]).predict(X[~k])[0] - y[~k][0]) ** 2 for k in kept])

    assert error(chosen.bandwidth_) <= min(error(chosen.bandwidth_ * 1.5), error(chosen.bandwidth_ / 1.5))
    assert chosen.score(*waves(200, seed=1)) > 0.97


def test_far_from_all_data_an_answer_is_a_number():
    X, y = waves()
    assert NadarayaWatsonRegressor(bandwidth=0.1).fit(X, y).predict([[1e6]])[0] == pytest.approx(y[X[:, 0].argmax()])
    assert NadarayaWatsonRegressor("box", 0.1).fit(X, y).predict([[1e6]])[0] == pytest.approx(y.mean())


def test_the_estimators_serve_in_a_pipeline_and_a_search():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), KernelClassifier())
    assert cross_val_score(pipeline, X, y, cv=5).mean() > 0.9
    search = GridSearchCV(pipeline, {"kernelclassifier__bandwidth": [0.3, 3.0], "kernelclassifier__kernel": ["gaussian", "cauchy"]}, cv=3).fit(X, y)
    assert search.best_params_["kernelclassifier__bandwidth"] == 0.3
    probabilities = search.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert clone(KernelClassifier("cauchy", 2.0)).get_params() == {"kernel": "cauchy", "bandwidth": 2.0, "class_weight": None}


def test_a_data_frame():
    pandas = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = y.map(lambda n: "abc"[n])
    model = KernelClassifier(bandwidth=0.3).fit(X, names)
    assert isinstance(X, pandas.DataFrame) and list(model.feature_names_in_) == list(X.columns)
    assert model.score(X, names) > 0.95 and "training row" in repr(model.explain(X.iloc[:2]))


@pytest.mark.parametrize(("options", "said"), [({"kernel": "gauss"}, "Kernel.name: unknown 'gauss'"), ({"bandwidth": -1.0}, "bandwidth: -1.0, expected a positive")])
def test_a_wrong_parameter_is_named_when_fitting(options, said):
    with pytest.raises(ValueError, match=said):
        NadarayaWatsonRegressor(**{"bandwidth": 1.0, **options}).fit(*waves(10))


# ---- bags ----


def bags(count=120, seed=0):
    """A bag is positive if one of its instances is unlike the others."""
    random = np.random.default_rng(seed)
    made, y, marked = [], [], []
    for n in range(count):
        bag = random.normal(size=(random.integers(3, 9), 4))
        place = random.integers(len(bag))
        if n % 2:
            bag[place, 1] = 5
        made.append(bag)
        y.append("with" if n % 2 else "without")
        marked.append(place)
    return made, y, marked


def test_bags_are_told_and_the_instance_is_found():
    X, y, _ = bags()
    model = MILClassifier(epochs=60, learning_rate=0.03, random_state=0).fit(X, y)
    X, y, marked = bags(seed=1)
    assert model.score(X, y) > 0.95
    explanation = model.explain(X)
    found = [explanation[n].looked_at[0][0] == f"instance {marked[n]}" for n in range(1, 120, 2)]
    assert np.mean(found) > 0.9
    assert explanation[1].said == "with" and sum(w for _, w in explanation[1].looked_at) == pytest.approx(1)
    again = MILClassifier(epochs=60, learning_rate=0.03, random_state=0).fit(*bags()[:2])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_bags_of_every_kind():
    X, y, _ = bags(20)
    model = MILClassifier(epochs=3, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    packed = np.empty(20, dtype=object)
    packed[:] = X
    np.testing.assert_array_equal(model.predict_proba(packed), expected)
    assert np.isfinite(model.predict_proba([X[0], np.zeros((0, 4))])).all()  # an empty bag
    even = np.stack([bag[:3] for bag in X])
    np.testing.assert_allclose(model.predict_proba(even), model.predict_proba(list(even)))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)
    assert GridSearchCV(MILClassifier(epochs=2), {"hidden": [4, 8]}, cv=2).fit(X, y).best_params_["hidden"] in (4, 8)
    with pytest.raises(ValueError, match="X: bag 1 has 3 features, expected 4"):
        model.predict([X[0], X[1][:, :3]])
    with pytest.raises(ValueError, match="X: bag 0 contains NaN"):
        model.predict([X[0] * np.nan])


# ---- graphs ----


def communities(seed=0, size=30):
    """Two groups, joined mostly within; the features are noise but for a hint at a few nodes."""
    random = np.random.default_rng(seed)
    group = np.repeat([0, 1], size)
    edges = [(a, b) for a in range(2 * size) for b in range(2 * size) if a != b and random.random() < (0.3 if group[a] == group[b] else 0.01)]
    return random.normal(size=(2 * size, 3)) + group[:, None], group, np.array(edges).T


def test_nodes_without_a_label_are_told_by_their_neighbours():
    X, group, edges = communities()
    y = np.full(60, -1)
    y[[0, 1, 2, 30, 31, 32]] = group[[0, 1, 2, 30, 31, 32]]
    model = GATClassifier(unlabelled=-1, epochs=60, random_state=0).fit(X, y, edges)
    assert list(model.classes_) == [0, 1]
    told = (model.predict(X, edges) == group).mean()
    assert told > 0.9
    assert model.predict_proba(X, torch.from_numpy(edges)).shape == (60, 2)
    explanation = model.explain(X, edges)
    assert sum(w for _, w in explanation[0].looked_at) == pytest.approx(1) and any(name == "itself" for name, _ in explanation[0].looked_at)
    with pytest.raises(ValueError, match="edge_index: none, expected"):
        model.predict(X)
    with pytest.raises(ValueError, match="edge_index: from 0 to 99, expected 0 to 59"):
        model.predict(X, [[0], [99]])
    assert model.predict(X, np.zeros((2, 0))).shape == (60,)  # no edges: each node by itself


def test_edges_may_be_a_sparse_matrix():
    from scipy.sparse import coo_array, csr_matrix
    from sklearn.neighbors import kneighbors_graph

    X, group, edges = communities()
    model = GATClassifier(epochs=20, random_state=0).fit(X, group, edges)
    for kind in (coo_array, csr_matrix):
        matrix = kind((np.ones(edges.shape[1]), (edges[1], edges[0])), shape=(60, 60))  # a row is a target
        np.testing.assert_allclose(model.predict_proba(X, matrix), model.predict_proba(X, edges), rtol=1e-10)
    near = kneighbors_graph(X, 5)
    assert (GATClassifier(epochs=20, random_state=0).fit(X, group, near).predict(X, near) == group).mean() > 0.7
    with pytest.raises(ValueError, match=r"edge_index: a sparse matrix \[60, 60\], expected \[59, 59\]"):
        model.predict(X[:59], near)


def test_rows_of_a_table_are_joined_to_their_neighbours():
    X, y = make_moons(200, noise=0.1, random_state=0)
    model = GATClassifier(epochs=60, learning_rate=0.03, random_state=0).fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) > 0.9
    np.testing.assert_allclose(model.predict_proba(X[100:110]), model.predict_proba(X[100:])[:10])
    assert "training row" in repr(model.explain(X[100:102]))


# ---- pictures ----


def test_an_explanation_draws_itself_from_nothing_else():
    X, y = waves()
    drawn = NadarayaWatsonRegressor().fit(X, y).explain(X[:2])._repr_html_()
    assert drawn.startswith("<table") and drawn.count("<tr>") == 2 and "training row" in drawn
    assert not re.search(r"https?:|<script|src=|url\(", drawn)
    hostile = KernelClassifier(bandwidth=1.0).fit(X, np.where(y > 0, "<b>", "&"))
    assert "<b>&lt;b&gt;</b>" in hostile.explain(X)._repr_html_()
