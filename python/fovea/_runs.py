"""The systems of the command ``fovea`` from Python: what trains, answers and explains is the command itself, in a process of its own."""

from __future__ import annotations

import csv
import functools
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
import weakref
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _check

Items = Union[str, Sequence[str], Mapping[str, Sequence[object]]]


class _Held:
    """A folder that goes with the last run that is in it. A TemporaryDirectory would warn that nobody closed it."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="fovea-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)

    def __deepcopy__(self, memo: object) -> "_Held":
        return self


def load(folder: Union[str, "os.PathLike[str]"]) -> "Run":
    """A run that ``fovea train`` or :func:`train` wrote.

    Example::

        run = fovea.load("out/run")
        run.predict(["a line", "another"])
        run.explain("a line")  # draws itself in a notebook

    Example::

        >>> trained = fovea.train("nadaraya-watson")  # out="out/run" keeps it; a folder of its own goes with the object
        >>> run = fovea.load(trained.folder)
        >>> print(run.predict({"times": [10, 20]}))
    """
    return Run(folder)


def train(
    system: str,
    data: Union[None, str, "os.PathLike[str]"] = None,
    out: Union[None, str, "os.PathLike[str]"] = None,
    *,
    epochs: Optional[int] = None,
    seed: Optional[int] = None,
    data_seed: Optional[int] = None,
    threads: Optional[int] = None,
    device: Optional[str] = None,
    overwrite: bool = False,
    resume: bool = False,
    quiet: bool = False,
    **settings: object,
) -> "Run":
    """Trains a system, as ``fovea train SYSTEM`` does, and returns the run.

    Args:
        system: its name, as ``fovea list`` shows it: ``"bahdanau"``, ``"gat"``, ``"transformer"``.
        data: a file or a folder; None for generated data.
        out: the folder of the run; None for one that lasts as long as the run that is returned.
        epochs, seed, data_seed, threads, device: the options of those names.
        overwrite: replace the run that is in the folder.
        resume: continue the one that was interrupted; start one if there is none.
        quiet: show nothing while it trains. Otherwise what was read and, every ten seconds, how far it is goes to ``sys.stderr``.
        settings: the system's own, which ``fovea list SYSTEM`` shows.

    Ctrl-C, or a notebook's interrupt, stops it after it has saved; the same call with ``resume=True`` continues.

    Example::

        run = fovea.train("nadaraya-watson", kernel="epanechnikov")
        print(run.metrics)

    Example::

        >>> run = fovea.train("nadaraya-watson", kernel="gaussian")
        >>> print(run.metrics["rmse"])
    """
    if not isinstance(system, str):
        raise TypeError(f"system: {_check.said(system)}, expected a name, as `fovea list` shows it")
    held = None
    if out is None:
        held = _Held()
        out = Path(held.name) / "run"
    words = ["train", system, "--out", os.fspath(out), "--json"]
    if data is not None and not isinstance(data, (str, os.PathLike)):
        hint = "; data.to_csv(path, index=False) writes one" if hasattr(data, "to_csv") else ""
        raise TypeError(f"data: {_check.said(data)}, expected the path of a file or a folder{hint}")
    options = {"data": None if data is None else os.fspath(data), "epochs": epochs, "seed": seed, "data-seed": data_seed}
    for name, value in {**options, "threads": threads, "device": device}.items():
        words += [] if value is None else [f"--{name}", str(value)]
    words += ["--overwrite"] * bool(overwrite) + ["--resume"] * bool(resume) + ["--quiet"] * bool(quiet)
    try:
        said = json.loads(_command([*words, *_set(settings)]))
    except KeyboardInterrupt:
        if held is None:
            raise
        raise KeyboardInterrupt("stopped; with `out` it would be kept, and resume=True would continue it") from None
    return Run(out, said.get("metrics"), held)


class Run:
    """A trained system: ``predict``, ``explain``, ``evaluate``.

    Example::

        >>> run = fovea.train("nadaraya-watson")
        >>> print(run.metrics["rmse"], run.predict({"times": [10, 20]}))
    """

    def __init__(self, folder: Union[str, "os.PathLike[str]"], metrics: Optional[Dict[str, float]] = None, held: object = None) -> None:
        self.folder = Path(folder).absolute()  # it is there still after os.chdir
        if not (self.folder / "manifest.json").exists():
            raise FileNotFoundError(f"{os.fspath(folder)}: no manifest.json there, expected a folder that `fovea train` wrote")
        self._metrics = metrics
        self._held = held  # a temporary folder, which goes with the last run that is in it

    @property
    def config(self) -> Dict[str, Any]:
        """The system and its settings, as the run has them."""
        found: Dict[str, Any] = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        return found

    @property
    def metrics(self) -> Dict[str, float]:
        """How well it does, on its own data."""
        if self._metrics is None:
            self._metrics = self.evaluate()["metrics"]
        return self._metrics

    def evaluate(self, data: Union[None, str, "os.PathLike[str]"] = None, **settings: object) -> Dict[str, Any]:
        """As ``fovea evaluate``: on its own test items, or on other data."""
        other = [] if data is None else ["--data", os.fspath(data)]
        found: Dict[str, Any] = json.loads(_command(["evaluate", os.fspath(self.folder), "--json", *other, *_set(settings)]))
        return found

    def predict(self, items: Items, **settings: object) -> Union[List[str], Dict[str, List[str]]]:
        """As ``fovea predict``: the answers, a line each. Columns by name (a data frame too) are a table.

        A system that answers a table with a table (``nadaraya-watson``, ``mixture-of-experts``) then gives columns by name; one that answers
        bags or the like gives its lines.
        """
        said = _command(["predict", os.fspath(self.folder), *_set(settings)], _text(items))
        rows = list(csv.reader(io.StringIO(said))) if _is_table(items) else []
        if not rows or _columns(items).keys().isdisjoint(rows[0]):
            return said.removesuffix("\n").split("\n") if said else []  # a line ends there alone, not at U+2028 or a form feed
        return {name: [row[n] for row in rows[1:]] for n, name in enumerate(rows[0])}

    def explain(self, items: Optional[Items] = None, **settings: object) -> "Report":
        """As ``fovea explain``: where the system looks, at these items or at some of its test items; draws itself in a notebook."""
        return Report(functools.partial(self._explained, None if items is None else _text(items), _set(settings)))

    def _explained(self, given: Optional[str], words: Sequence[str], ending: str) -> str:
        with tempfile.TemporaryDirectory(prefix="fovea-") as folder:
            made = Path(folder) / f"report.{ending}"
            read = [] if given is None else ["--input", "-"]
            _command(["explain", os.fspath(self.folder), "--out", str(made), *read, *words], given)
            return made.read_text(encoding="utf-8")

    def __repr__(self) -> str:
        return f"<fovea.Run {self.folder}>"


class Report:
    """A page that explains; it holds all it needs.

    Example::

        >>> report = fovea.train("nadaraya-watson").explain({"times": [10, 20]})  # in a notebook it draws itself
        >>> page = report._repr_html_()
    """

    def __init__(self, written: Callable[[str], str]) -> None:
        self._written = written
        self.html = written("html")

    @property
    def data(self) -> Union[Dict[str, Any], List[Dict[str, Any]]]:
        """What the page draws, as docs/explanation.md describes it: items, weights, tokens. A list, where the page draws several."""
        found: Union[Dict[str, Any], List[Dict[str, Any]]] = json.loads(self._written("json"))
        return found

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page."""
        Path(path).write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<fovea.Report, {len(self.html)} characters of HTML; save(path) writes it>"

    def _repr_html_(self) -> str:
        return f'<iframe sandbox="allow-scripts" style="width:100%;height:640px;border:0" srcdoc="{html.escape(self.html)}"></iframe>'


def _is_table(items: object) -> bool:
    """Columns by name: a dictionary or a data frame. A single column (a series) has keys too, and is lines."""
    return isinstance(items, Mapping) or hasattr(items, "columns")


def _columns(table: Any) -> Dict[str, List[object]]:
    return {str(name): list(table[name]) for name in getattr(table, "columns", table)}


def _text(items: Items) -> str:
    if isinstance(items, str):
        return items if items.endswith("\n") else items + "\n"
    if _is_table(items):
        columns = _columns(items)
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"items: columns of different lengths, {', '.join(f'{name} {length}' for name, length in lengths.items())}")
        made = io.StringIO()
        writer = csv.writer(made, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values()))
        return made.getvalue()
    if not hasattr(items, "__iter__"):
        raise TypeError(f"items: {_check.said(items)}, expected lines, or a table with columns by name")
    lines = list(items)
    for n, line in enumerate(lines):
        if not isinstance(line, str):
            raise TypeError(f"items[{n}]: {type(line).__name__}, expected str; columns by name are a table")
        if "\n" in line.rstrip("\n"):
            raise ValueError(f"items[{n}]: has a line break within, expected one line")
    return "".join(line.rstrip("\n") + "\n" for line in lines)


def _set(settings: Mapping[str, object]) -> List[str]:
    words = []
    for name, value in settings.items():
        words += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return words


def _command(words: Sequence[str], given: Optional[str] = None) -> str:
    """What the command says; its error as an exception, what it remarks as a warning, its progress at once."""
    pipe = subprocess.PIPE
    with subprocess.Popen([_found(), *words], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        said = _Said(process)
        try:
            out = process.communicate((given or "").encode())[0]  # bytes: text would change line ends
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_stopped(process, said)) from None
        except BaseException:
            _stopped(process, said)
            raise
        said.wait()
    if process.returncode == 2:
        raise ValueError(said.last_words())
    if process.returncode != 0:
        raise RuntimeError(said.last_words() or f"fovea {words[0]}: ended with {process.returncode}")
    if remarked := said.remarks():
        warnings.warn(remarked, stacklevel=3)
    return out.decode()


class _Said:
    """A command's standard error, line by line: remarks, which begin with its name, are kept, and progress is shown as it comes."""

    _NAME = "fovea: "

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stderr is not None
        self._stream, process.stderr = process.stderr, None  # which communicate() would read until the end
        self._lines: List[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._stream:
            for line in self._stream:
                text = line.decode(errors="replace").rstrip()
                self._lines.append(text)
                if text and not text.startswith(self._NAME):
                    print(text, file=sys.stderr, flush=True)

    def wait(self) -> None:
        self._reader.join()

    def remarks(self) -> str:
        return self._in_words([line for line in self._lines if line.startswith(self._NAME)])

    def last_words(self) -> str:
        """The remarks, and what follows the last of them: an error may have several lines."""
        named = [n for n, line in enumerate(self._lines) if line.startswith(self._NAME)]
        rest = self._lines[named[-1] + 1 if named else 0 :]
        return self._in_words([*(self._lines[n] for n in named), *rest])

    def _in_words(self, lines: Sequence[str]) -> str:
        return "\n".join(_in_python(line.removeprefix(self._NAME)) for line in lines if line)


def _stopped(process: "subprocess.Popen[bytes]", said: _Said) -> str:
    """Lets a command that is not waited for any more save what it has, and gives its last words.

    By SIGTERM: from a terminal and from a notebook Ctrl-C reaches the command too, and a second SIGINT would end it before it has saved.
    """
    try:
        process.terminate()
        process.communicate()
        said.wait()
        return said.last_words()
    except BaseException:  # Ctrl-C again
        process.kill()
        raise


def _in_python(said: str) -> str:
    """What the command says, with an option under the name of its argument: "kernal", not "--set kernal"."""
    return re.sub(r"(?<![\w-])--(?:set (?=\w)|(?=[a-z]))([a-z]*(?:-[a-z]+)*)", lambda option: option[1].replace("-", "_"), said)


def _found() -> str:
    named = os.environ.get("FOVEA_COMMAND") or "fovea"
    path = shutil.which(named)  # None of a folder, and of a file that is no program
    if path is None:
        raise FileNotFoundError(f"{named}: the command is not there; `make` builds build/bin/fovea: put it on the PATH, or set FOVEA_COMMAND to it")
    return path
