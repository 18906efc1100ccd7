"""What a table comes as: frames, arrays of any layout, labels of any type; and where an estimator is fitted: in forks, beside another device."""

import io
import os
import subprocess
import sys

import pytest
import torch

pytest.importorskip("sklearn")
np = pytest.importorskip("numpy")

import joblib  # noqa: E402
import scipy.sparse  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.compose import make_column_selector, make_column_transformer  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402
from sklearn.ensemble import StackingClassifier, VotingClassifier  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.multiclass import OneVsRestClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder  # noqa: E402

from fovea.sklearn import GATClassifier, KernelClassifier, MILClassifier, NadarayaWatsonRegressor  # noqa: E402

CLASSIFIERS = [KernelClassifier(bandwidth=0.5), MILClassifier(epochs=15, random_state=0), GATClassifier(epochs=15, random_state=0)]
ROWS, KINDS = load_iris(return_X_y=True)
PLACES = np.random.default_rng(0).permutation(150)[:80]
ROWS, NAMES = ROWS[PLACES], np.array(["setosa", "versicolor", "virginica"], dtype=object)[KINDS[PLACES]]

every = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda estimator: type(estimator).__name__)


def frozen(x):
    x = x.copy()
    x.setflags(write=False)
    return x


LAYOUTS = {
    "Fortran's order": np.asfortranarray,
    "read-only": frozen,
    "rows backwards in memory": lambda x: x[::-1].copy()[::-1],
    "columns backwards in memory": lambda x: x[:, ::-1].copy()[:, ::-1],
    "every other column": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "big-endian": lambda x: x.astype(">f8"),
    "long double": lambda x: x.astype(np.longdouble),
    "lists": lambda x: x.tolist(),
}


@pytest.mark.filterwarnings("error")
@every
def test_the_layout_of_an_array_does_not_change_the_answer(estimator):
    model = clone(estimator).fit(ROWS, NAMES)
    expected = model.predict_proba(ROWS)
    for name, made in LAYOUTS.items():
        np.testing.assert_allclose(model.predict_proba(made(ROWS)), expected, rtol=1e-9, atol=1e-12, err_msg=name)
    again = clone(estimator).fit(frozen(np.asfortranarray(ROWS)), frozen(NAMES))
    np.testing.assert_allclose(again.predict_proba(ROWS), expected, rtol=1e-6, atol=1e-9)


@every
def test_a_frame_of_pandas(estimator):
    pandas = pytest.importorskip("pandas")
    columns = ["sepal length", "sepal width", "petal length", "petal width"]
    frame = pandas.DataFrame(ROWS, columns=columns, index=PLACES)  # an index that does not count from 0
    names = pandas.Series(NAMES, index=PLACES)
    model = clone(estimator).fit(frame, names)
    assert list(model.feature_names_in_) == columns
    np.testing.assert_array_equal(model.predict(frame), clone(estimator).fit(ROWS, NAMES).predict(ROWS))
    assert len(model.explain(frame.iloc[3:5])) == 2
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[columns[::-1]])
    for labels in (names.astype("category"), names.astype("string")):
        np.testing.assert_array_equal(clone(estimator).fit(frame, labels).predict(frame), model.predict(frame))
    kinds = frame.assign(kind=pandas.Categorical(np.where(PLACES % 2, "odd", "even")))
    with pytest.raises(ValueError, match="could not convert string to float"):
        clone(estimator).fit(kinds, names)
    encoded = make_column_transformer((OneHotEncoder(), make_column_selector(dtype_include="category")), remainder="passthrough")
    assert make_pipeline(encoded, clone(estimator)).fit(kinds, names).score(kinds, names) > 0.8


def test_bags_that_are_frames():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(ROWS, columns=list("abcd")).assign(bag=np.arange(80) // 4)
    bags = [bag.drop(columns="bag") for _, bag in table.groupby("bag")]
    labels = ["odd" if n % 2 else "even" for n in range(20)]
    model = MILClassifier(epochs=3, random_state=0).fit(bags, labels)
    expected = MILClassifier(epochs=3, random_state=0).fit([bag.to_numpy() for bag in bags], labels)
    np.testing.assert_array_equal(model.predict_proba(bags), expected.predict_proba([bag.to_numpy() for bag in bags]))
    np.testing.assert_array_equal(model.predict_proba(pandas.Series(bags)), model.predict_proba(bags))
    np.testing.assert_array_equal(model.predict_proba([bag.to_numpy().tolist() for bag in bags]), model.predict_proba(bags))
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict([bag[list("dcba")] for bag in bags])


def test_bags_that_are_empty_lists_and_what_is_no_bag():
    bags = [[[0.0, 1.0], [1.0, 0.0]], [], np.zeros((0, 2)), [[2.0, 2.0]]]
    model = MILClassifier(epochs=3, random_state=0).fit(bags, [0, 1, 1, 0])
    np.testing.assert_array_equal(model.predict_proba([[], np.zeros((1, 2))])[:1], model.predict_proba([np.zeros((0, 2))]))
    with pytest.raises(ValueError, match=r"X: bag 1 has 1 dimensions, expected \[instances, features\]"):
        model.predict([np.zeros((2, 2)), np.zeros(2)])
    with pytest.raises(TypeError, match=r"^X: bag 1 is sparse, expected an array \[instances, features\]; its toarray\(\) makes one$"):
        model.predict([np.zeros((2, 2)), scipy.sparse.csr_array(np.zeros((2, 2)))])
    with pytest.raises(ValueError, match=r"^X: bag 0: could not convert string to float: 'a', expected numbers \[instances, features\]$"):
        model.predict([[["a", "b"]]])


def test_edges_by_their_name():
    edges = [[0, 1, 2], [1, 2, 0]]
    model = GATClassifier(epochs=3, random_state=0).fit(ROWS, NAMES, edge_index=edges)
    np.testing.assert_array_equal(model.predict(ROWS, edge_index=edges), model.predict(ROWS, edges))
    np.testing.assert_array_equal(model.predict_proba(ROWS, edge_index=edges), model.predict_proba(ROWS, edges))


@every
def test_a_search_in_other_processes_and_what_joblib_stores(estimator):
    name, values = ("bandwidth", [0.3, 3.0]) if hasattr(estimator, "bandwidth") else ("hidden", [4, 8])
    search = GridSearchCV(clone(estimator), {name: values}, cv=2, n_jobs=2).fit(ROWS, NAMES)
    assert search.best_params_[name] in values
    file = io.BytesIO()
    joblib.dump(search, file)
    file.seek(0)
    np.testing.assert_array_equal(joblib.load(file).predict_proba(ROWS), search.predict_proba(ROWS))


def test_numbers_of_numpy_are_settings():
    grid = {"hidden": np.arange(3, 5), "epochs": np.array([2], dtype=np.int32)}
    assert GridSearchCV(MILClassifier(), grid, cv=2).fit(ROWS, NAMES).best_params_["hidden"] in (3, 4)
    assert GridSearchCV(GATClassifier(), {**grid, "heads": np.arange(1, 3), "n_neighbors": np.arange(3, 4)}, cv=2).fit(ROWS, NAMES).best_params_["heads"] in (1, 2)
    KernelClassifier(bandwidth=np.float32(0.5)).fit(ROWS, NAMES)


SETTINGS = [
    (MILClassifier(hidden=0), ValueError, "hidden: 0, expected at least 1"), (MILClassifier(hidden=2.5), TypeError, "hidden: 2.5, expected a whole number"),
    (MILClassifier(epochs=-1), ValueError, "epochs: -1, expected at least 1"), (GATClassifier(heads=0), ValueError, "heads: 0, expected at least 1"),
    (GATClassifier(n_neighbors=0), ValueError, "n_neighbors"), (KernelClassifier(bandwidth=None), ValueError, "bandwidth: None, expected a positive number"),
    (KernelClassifier(bandwidth="scott"), ValueError, "bandwidth: str 'scott', expected a positive number or 'auto'"),
    (NadarayaWatsonRegressor(bandwidth=-1), ValueError, "bandwidth: -1.0, expected a positive finite number"),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "kind", "said"), SETTINGS, ids=lambda x: repr(x) if hasattr(x, "fit") else None)
def test_a_setting_that_is_wrong_is_named(estimator, kind, said):
    with pytest.raises(kind, match=said):
        clone(estimator).fit(ROWS, NAMES == "setosa")


@every
@pytest.mark.parametrize("top", [0, -1])
def test_an_explanation_shows_at_least_one(estimator, top):
    with pytest.raises(ValueError, match=f"top: {top}, expected at least 1"):
        clone(estimator).fit(ROWS, NAMES).explain(ROWS[:2], top=top)


FORKS = """
import joblib, numpy as np, torch
from sklearn.base import clone
from fovea.sklearn import MILClassifier
torch.set_num_threads(2)
X = np.random.default_rng(0).normal(size=(4096, 3))
model = MILClassifier(epochs=1).fit(X, X[:, 0] > 0)  # with threads, which a fork has not
with joblib.parallel_backend("multiprocessing"):
    fitted = joblib.Parallel(2)(joblib.delayed(clone(model).fit)(X, X[:, 0] > 0) for _ in range(2))
print(len(fitted))
"""


def test_an_estimator_is_fitted_in_a_fork():
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=240)  # waited without end
    assert done.stdout == "2\n", done.stderr


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, NadarayaWatsonRegressor("box", 0.5)], ids=lambda estimator: type(estimator).__name__)
def test_torchs_defaults_are_not_the_estimators(estimator):
    labels = NAMES == "setosa"
    expected = clone(estimator).fit(ROWS, labels).predict(ROWS)
    torch.set_default_device("meta")  # as "cuda" would be, on every machine
    torch.set_default_dtype(torch.float64)
    try:
        model = clone(estimator).fit(ROWS, labels)
        np.testing.assert_array_equal(model.predict(ROWS) > 0.5, expected > 0.5)
        assert len(model.explain(ROWS[:2])) == 2
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)


def test_where_scikit_learn_is_missing_it_is_said():
    program = "import sys; sys.modules['sklearn'] = None; import fovea; fovea.sklearn"
    said = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True)
    assert said.stderr.splitlines()[-1].startswith("ImportError: fovea.sklearn: needs scikit-learn, version 1.6 or newer (")


@every
def test_classes_have_weights(estimator):
    random = np.random.default_rng(0)
    y = np.repeat(["often", "seldom"], [90, 10])
    X = random.normal(size=(100, 2)) + 1.5 * (y == "seldom")[:, None]
    found = {str(w): (clone(estimator).set_params(class_weight=w).fit(X, y).predict(X) == y)[90:].mean() for w in (None, "balanced", {"seldom": 0.0})}
    assert found["balanced"] > found["None"] >= found["{'seldom': 0.0}"] == 0
    with pytest.raises(ValueError, match="class_weight"):
        clone(estimator).set_params(class_weight="evenly").fit(X, y)


def test_a_row_of_weight_three_is_three_rows():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(40, 2)), np.repeat(["a", "b"], 20)
    weighted = KernelClassifier(bandwidth=0.5, class_weight={"a": 3}).fit(X, y)
    repeated = KernelClassifier(bandwidth=0.5).fit(np.concatenate([X, X[:20], X[:20]]), np.concatenate([y, y[:20], y[:20]]))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-12)
    hidden = KernelClassifier("box", bandwidth=1e-3, class_weight={"a": 0}).fit(X, y)  # whose neighbours are the rows themselves
    assert set(hidden.predict(X)) == {"b"} and np.allclose(hidden.predict_proba(X).sum(1), 1)
    assert "training row 0: a" in str(hidden.explain(X[:1]))


@every
def test_a_sparse_table_is_refused_with_what_to_do(estimator):
    sparse, model = scipy.sparse.csr_array(ROWS), clone(estimator).fit(ROWS, NAMES)
    for call in (lambda: clone(estimator).fit(sparse, NAMES), lambda: model.predict(sparse)):
        with pytest.raises(TypeError, match=r"Sparse data was passed for X, but dense data is required. Use '.toarray\(\)'"):
            call()


@every
def test_classifiers_serve_in_others(estimator):
    for other in (
        CalibratedClassifierCV(estimator, cv=2),
        OneVsRestClassifier(estimator),
        StackingClassifier([("one", estimator)], cv=2),
        VotingClassifier([("one", estimator), ("two", clone(estimator))], voting="soft"),
    ):
        assert (other.fit(ROWS, NAMES).predict(ROWS) == NAMES).mean() > 0.8, other
