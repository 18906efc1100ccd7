"""The wheel: made by pip, installed where there is torch and nothing else, and where there is another torch."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from installed import SOURCE, readme, run

try:
    MINOR = ".".join(importlib.metadata.version("torch").split(".")[:2])
    import pip as _  # noqa: F401
    import scikit_build_core as _  # noqa: F401
except ImportError:
    MINOR = ""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("FOVEA_LIBRARY", "PYTHONPATH")}


def required(name, found):
    """The distributions that `name` needs to run, itself included."""
    if name in found:
        return found
    found[name] = importlib.metadata.distribution(name)
    for line in found[name].requires or ():
        if "extra ==" not in line:
            try:
                required(re.split(r"[^A-Za-z0-9._-]", line, 1)[0], found)
            except importlib.metadata.PackageNotFoundError:
                pass  # for another Python or system
    return found


def environment(folder):
    """A new virtual environment: its Python, and where its packages are."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    return python, Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())


def pip(python, *arguments):
    """pip's outcome; it asks nobody for packages, whatever this machine's configuration of pip says."""
    alone = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("PIP_")} | {"PIP_CONFIG_FILE": os.devnull}
    command = [python, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", *arguments]
    return subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=alone)


class Requirement(unittest.TestCase):
    def test_a_build_of_pips_own_takes_the_torch_of_the_set_up(self):
        minor = re.search(r"^torch_version=(\d+\.\d+)", (SOURCE / "scripts/setup").read_text(), re.M)[1]
        self.assertIn(f'"torch=={minor}.*"', (SOURCE / "pyproject.toml").read_text())


@unittest.skipUnless(MINOR, f"{sys.executable} has no torch, scikit-build-core or pip")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="fovea-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        run(sys.executable, "-m", "pip", "wheel", SOURCE, "--no-build-isolation", "--no-deps", "--wheel-dir", cls.scratch, env=ENVIRONMENT)
        (cls.wheel,) = cls.scratch.glob("*.whl")

    def test_it_has_one_library_and_its_types_and_requires_the_torch_it_was_built_for(self):
        self.assertRegex(self.wheel.name, r"^fovea-[0-9.]+-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            said = wheel.read(metadata).decode()
            built = wheel.read("fovea/built_for_torch.txt").decode().strip()
        self.assertEqual([name for name in names if ".so" in name], ["fovea/libfovea.so"])
        self.assertIn("fovea/py.typed", names)
        self.assertIn("fovea/_attend.pyi", names)
        self.assertFalse([name for name in names if not name.startswith("fovea")], "only our own package")
        self.assertIn(f"Requires-Dist: torch=={MINOR}.*", said.splitlines())
        self.assertEqual(built.split(".")[:2], MINOR.split("."))

    def test_it_works_beside_torch_and_nothing_else(self):
        python, packages = environment(self.scratch / "clean")
        for distribution in required("torch", {}).values():
            for top in {Path(file).parts[0] for file in distribution.files or () if ".." not in Path(file).parts}:
                if not (packages / top).exists() and top != "__pycache__":
                    (packages / top).symlink_to(distribution.locate_file(top))
        installed = pip(python, self.wheel)
        self.assertEqual(installed.returncode, 0, installed.stdout)
        said = run(python, "-c", "import fovea; print(fovea.__file__)", cwd=self.scratch, env=ENVIRONMENT)
        self.assertEqual(said.splitlines()[-1], str(packages / "fovea/__init__.py"))
        run(python, "-c", readme("python"), cwd=self.scratch, env=ENVIRONMENT)
        learned = "import torch, fovea; x = torch.randn(1, 2, 6, 8, requires_grad=True); fovea.attend(x, x, x, structure=fovea.Causal()).sum().backward(); "
        said = run(python, "-c", learned + "layer = fovea.nn.MultiheadAttention(8, 2); layer(x[0, 0], x[0, 0], x[0, 0]); print(x.grad.shape)",
                   cwd=self.scratch, env=ENVIRONMENT)
        self.assertEqual(said.splitlines()[-1], "torch.Size([1, 2, 6, 8])")
        missing = subprocess.run([python, "-c", "import fovea; fovea.sklearn"], cwd=self.scratch, env=ENVIRONMENT, capture_output=True, text=True)
        self.assertIn("fovea.sklearn: needs scikit-learn, version 1.6 or newer", missing.stderr.splitlines()[-1])

    def test_with_another_torch_pip_and_import_say_which(self):
        python, packages = environment(self.scratch / "other")
        (packages / "torch").mkdir()
        (packages / "torch/__init__.py").write_text("__version__ = '2.0.1'\n")
        (packages / "torch-2.0.1.dist-info").mkdir()
        (packages / "torch-2.0.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.0.1\n")
        refused = pip(python, self.wheel)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"torch=={MINOR}.*", refused.stdout)
        self.assertEqual(pip(python, "--no-deps", self.wheel).returncode, 0)
        said = subprocess.run([python, "-c", "import fovea"], cwd=self.scratch, env=ENVIRONMENT, capture_output=True, text=True)
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr.splitlines()[-1], rf"^ImportError: fovea: built for torch {re.escape(MINOR)}\.\S+, torch 2\.0\.1 is installed; ")

    def test_pip_install_of_the_source_is_one_command(self):
        site = self.scratch / "site"
        run(sys.executable, "-m", "pip", "install", SOURCE, "--no-build-isolation", "--no-deps", "--target", site, env=ENVIRONMENT)
        outside = {**ENVIRONMENT, "PYTHONPATH": str(site)}
        said = run(sys.executable, "-c", "import fovea, torch; print(fovea.__file__, torch.ops.fovea.simd_target())", cwd=self.scratch, env=outside)
        self.assertTrue(said.startswith(str(site)), said)
        run(sys.executable, "-c", readme("python"), cwd=self.scratch, env=outside)

    def test_an_editable_install_is_the_source(self):
        python, packages = environment(self.scratch / "editable")
        (packages / "torch.pth").write_text(str(Path(importlib.metadata.distribution("torch").locate_file(""))) + "\n")
        run(python, "-m", "pip", "install", "-e", SOURCE, "--no-build-isolation", "--no-deps", env=ENVIRONMENT)
        said = run(python, "-c", "import fovea; print(fovea.__file__)", cwd=self.scratch, env=ENVIRONMENT)
        self.assertEqual(said.splitlines()[-1], str(Path(SOURCE).resolve() / "python/fovea/__init__.py"))
        run(python, "-c", readme("python"), cwd=self.scratch, env=ENVIRONMENT)


if __name__ == "__main__":
    unittest.main()
