"""`fovea.train` and `fovea.load`: the command's systems from Python, with its answers, its errors and its pages."""

import copy
import gc
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

import fovea

COMMAND = os.environ.get("FOVEA_COMMAND")
pytestmark = pytest.mark.skipif(not COMMAND, reason="FOVEA_COMMAND: not set; run through ctest")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fovea.train("nadaraya-watson", out=tmp_path_factory.mktemp("runs") / "curve", kernel="epanechnikov")


def test_a_run_has_its_settings_and_metrics(run):
    assert run.metrics["rmse"] > 0 and run.evaluate()["system"] == "nadaraya-watson"
    assert "epanechnikov" in str(run.config)
    loaded = fovea.load(run.folder)
    assert loaded.metrics == run.metrics and str(run.folder) in repr(loaded)


def test_predictions_are_the_commands(run):
    asked = "times\n10\n20\n"
    expected = subprocess.run([COMMAND, "predict", run.folder], input=asked, capture_output=True, text=True, check=True).stdout.splitlines()
    assert run.predict(asked) == run.predict(["times", "10", "20"]) == expected
    table = run.predict({"times": [10, 20]})
    assert list(table) == expected[0].split(",") and table["accel"] == [line.split(",")[1] for line in expected[1:]]


def test_a_data_frame_is_a_table(run):
    pandas = pytest.importorskip("pandas")
    assert run.predict(pandas.DataFrame({"times": [10.0]}))["times"] == ["10"]


def test_frames_are_tables_and_a_single_column_is_lines(run):
    class Frame:  # as those of pandas and polars are
        columns = ["times"]

        def __getitem__(self, name):
            return {"times": [10, 20]}[name]

    class Series(list):
        def keys(self):
            return range(len(self))

    assert run.predict(Frame()) == run.predict({"times": [10, 20]})
    assert run.predict(Series(["times", "10", "20"])) == run.predict(["times", "10", "20"])


def test_bags_of_a_table_are_answered_by_lines(tmp_path):
    rows = "".join(f"b{n // 3},{n // 3 % 2},{n % 7},{n % 5}\n" for n in range(60))
    (tmp_path / "bags.csv").write_text("bag,label,f0,f1\n" + rows)
    run = fovea.train("mil", data=tmp_path / "bags.csv", epochs=1, hidden=4, attention=4)
    answers = run.predict({"bag": ["a", "a", "b"], "f0": [1, 2, 3], "f1": [0, 0, 1]})
    assert [line.split("\t")[0] for line in answers] == ["a", "b"]
    assert answers == run.predict(["bag,f0,f1", "a,1,0", "a,2,0", "b,3,1"])


def test_an_explanation_is_a_page_and_its_data(run, tmp_path):
    report = run.explain()
    assert report.html.lstrip().lower().startswith("<!doctype html>") and report.data["format"] == "fovea-explanation"
    shown = report._repr_html_()
    assert shown.startswith("<iframe") and "allow-scripts" in shown and "<script" not in shown  # escaped, inside of the frame
    report.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == report.html
    asked = run.explain({"times": [10, 20]}).data
    assert asked["format"] == "fovea-explanation" and asked != report.data


def test_a_run_without_a_folder_lasts_as_long_as_it_is_held(tmp_path):
    (tmp_path / "table.csv").write_text("x,y\n" + "".join(f"{n},{n * n}\n" for n in range(20)))
    run = fovea.train("nadaraya-watson", data=tmp_path / "table.csv")
    folder = run.folder
    copied = copy.deepcopy(run)
    del run
    gc.collect()
    assert folder.exists() and len(copied.predict({"x": [3.5]})["y"]) == 1
    del copied
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize(("call", "kind", "said"), [
    (lambda: fovea.train("nadaraya-watson", nosuch=1), ValueError, "^nosuch: no such option"),
    (lambda: fovea.train("nadaraya-watson", kernel="gausian"), ValueError, "^kernel=gausian: expected one of gaussian, "),
    (lambda: fovea.train("nadaraya-watson", data_seed=-1), ValueError, "^data_seed -1: expected a whole number"),
    (lambda: fovea.train(3), TypeError, "system: 3, expected a name, as `fovea list` shows it"),
    (lambda: fovea.train("nadaraya-watson", data={"x": [1]}), TypeError, "data: dict, expected the path of a file or a folder"),
    (lambda: fovea.train("nadarya-watson"), ValueError, "nadaraya-watson"),
    (lambda: fovea.train("nadaraya-watson", data="/nowhere/x.csv"), Exception, "/nowhere/x.csv"),
    (lambda: fovea.load("/nowhere"), FileNotFoundError, "no manifest.json there"),
])  # fmt: skip
def test_the_commands_errors_are_exceptions(call, kind, said):
    with pytest.raises(kind, match=said):
        call()


def test_a_folder_that_is_taken_and_a_run_that_goes_on(run):
    with pytest.raises(ValueError, match=r": holds a run already: resume continues it, overwrite replaces it"):
        fovea.train("nadaraya-watson", out=run.folder)
    assert fovea.train("nadaraya-watson", out=run.folder, kernel="epanechnikov", resume=True).metrics == run.metrics


def test_a_run_and_its_reports_go_to_other_processes_and_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = fovea.train("nadaraya-watson", out="kept")
    report = run.explain({"times": [10, 20]})
    monkeypatch.chdir("/")
    expected = run.predict({"times": [10, 20]})
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        assert copied(run).predict({"times": [10, 20]}) == expected
        assert copied(report).html == report.html and copied(report).data == report.data


def test_items_that_are_no_lines_are_named(run):
    with pytest.raises(TypeError, match="items: None, expected lines, or a table"):
        run.predict(None)
    with pytest.raises(ValueError, match="items: columns of different lengths, times 2, weights 1"):
        run.predict({"times": [10, 20], "weights": [1]})
    with pytest.raises(TypeError, match=r"items\[1\]: int, expected str"):
        run.predict(["times", 10])
    with pytest.raises(ValueError, match=r"items\[0\]: has a line break within"):
        run.predict(["times\n10"])


def test_a_line_is_what_ends_in_a_line_feed(tmp_path, monkeypatch):
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "says").write_text("#!/bin/sh\nexec cat\n")
    (tmp_path / "says").chmod(0o755)
    monkeypatch.setenv("FOVEA_COMMAND", str(tmp_path / "says"))
    items = ["one\u2028line", "a\rb", "page\fbreak", "", "\x85"]
    assert fovea.load(tmp_path).predict(items) == items
    assert fovea.load(tmp_path).predict([]) == []


@pytest.mark.parametrize("named", ["/nowhere/fovea", os.path.dirname(__file__), __file__], ids=["nothing", "a folder", "no program"])
def test_a_command_that_is_not_there_is_said(named, monkeypatch):
    monkeypatch.setenv("FOVEA_COMMAND", named)
    with pytest.raises(FileNotFoundError, match="the command is not there; `make` builds build/bin/fovea"):
        fovea.train("nadaraya-watson")


def test_a_folder_of_its_own_goes_without_a_warning():
    program = "import fovea, os; run = fovea.train('nadaraya-watson'); print(run.folder)"
    said = subprocess.run([sys.executable, "-W", "error", "-c", program], env=os.environ, capture_output=True, text=True)
    assert said.returncode == 0 and not said.stderr, said.stderr
    assert not os.path.exists(os.path.dirname(said.stdout.strip()))


def test_progress_is_shown_while_it_trains(tmp_path, monkeypatch):
    """The script waits until its first line was read: a line that is kept until the end would wait for ever."""
    (tmp_path / "manifest.json").write_text("{}")
    script = """#!/bin/sh
case "$*" in *--quiet*) ;; *) echo ' 10%  epoch 1/10  9 s left' >&2; while [ ! -e go ]; do sleep 0.05; done;; esac
echo 'fovea: column day left out' >&2
echo '{"metrics": {}}'
"""
    (tmp_path / "says").write_text(script)
    (tmp_path / "says").chmod(0o755)
    monkeypatch.setenv("FOVEA_COMMAND", str(tmp_path / "says"))
    monkeypatch.chdir(tmp_path)

    class Seen(io.StringIO):
        def write(self, text):
            if "epoch 1/10" in text:
                (tmp_path / "go").touch()
            return super().write(text)

    seen = Seen()
    monkeypatch.setattr(sys, "stderr", seen)
    waiting = threading.Timer(60, (tmp_path / "go").touch)
    waiting.start()
    before = time.monotonic()
    with pytest.warns(UserWarning, match="^column day left out$"):
        fovea.train("pooling", out=tmp_path)
    waiting.cancel()
    assert seen.getvalue() == " 10%  epoch 1/10  9 s left\n" and time.monotonic() - before < 60
    with pytest.warns(UserWarning, match="^column day left out$"):
        fovea.train("pooling", out=tmp_path, quiet=True)
    assert seen.getvalue() == " 10%  epoch 1/10  9 s left\n"


def test_what_was_read_is_shown(tmp_path, capfd):
    (tmp_path / "table.csv").write_text("No.,x,y\n" + "".join(f"{n},{n},{n * n}\n" for n in range(1, 21)))
    fovea.train("nadaraya-watson", data=tmp_path / "table.csv")
    assert capfd.readouterr().err == "read 20 rows: y from x; column No. left out: row numbers\n"


@pytest.mark.parametrize(("reached", "kept"), [("both", True), ("both", False), ("python alone", True)])
def test_an_interrupt_waits_until_the_training_has_saved(reached, kept, tmp_path):
    """A notebook's interrupt and Ctrl-C reach both processes, `kill -INT` one."""
    (tmp_path / "pairs.tsv").write_text("".join(f"{a} {b}\t{b} {a}\n" for a in "abcdef" for b in "uvwxyz"))
    call = f"import fovea; fovea.train('seq2seq', data='pairs.tsv', threads=1, epochs=10**6, out={'out' if kept else None!r})"
    (tmp_path / "fovea").write_text(f'#!/bin/sh\nexec "{COMMAND}" "$@" --checkpoint 0.1\n')  # its first checkpoint says that it learns
    (tmp_path / "fovea").chmod(0o755)
    environment = {**os.environ, "TMPDIR": str(tmp_path), "FOVEA_COMMAND": str(tmp_path / "fovea")}
    python = subprocess.Popen([sys.executable, "-c", call], cwd=tmp_path, env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 100
        while not list(tmp_path.rglob("state.safetensors")):
            assert python.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        (os.kill if reached == "python alone" else os.killpg)(python.pid, signal.SIGINT)
        said = python.communicate(timeout=100)[1]
    finally:
        if python.poll() is None:
            os.killpg(python.pid, signal.SIGKILL)
    if kept:
        assert "KeyboardInterrupt: stopped in epoch " in said and "resume continues" in said, said
        assert [path.name for path in (tmp_path / "out").iterdir()] == [".training"] and (tmp_path / "out/.training/state.safetensors").exists()
        assert not list(tmp_path.rglob("*.unfinished"))
    else:
        assert "KeyboardInterrupt: stopped; with `out` it would be kept" in said, said
        assert not list(tmp_path.glob("fovea-*"))
