"""What the tests of the installed package share: where it was built, and programs made with it."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["FOVEA_SOURCE_DIR"])
BUILD = Path(os.environ["FOVEA_BUILD_DIR"])
LIBTORCH = os.environ["LIBTORCH_DIR"]
CONSUMERS = SOURCE / "tests/package"


def run(*command, **options):
    outcome = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if outcome.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{outcome.stdout}")
    return outcome.stdout


def readme(language):
    """The README's first block in that language."""
    return re.search(rf"```{language}\n(.*?)```", (SOURCE / "README.md").read_text(), re.DOTALL).group(1)


class Installed(unittest.TestCase):
    """The package in self.prefix, a folder that was moved after the installation. `components`: None for all."""

    components = None

    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="fovea-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        install = ["cmake", "--install", BUILD, "--prefix", cls.scratch / "installed"]
        if cls.components is None:
            run(*install)
        for component in cls.components or ():
            run(*install, "--component", component)
        cls.prefix = cls.scratch / "moved" / "here"
        cls.prefix.parent.mkdir()
        (cls.scratch / "installed").rename(cls.prefix)

    def consumer(self, name, *flags, readme=None):
        shutil.copytree(CONSUMERS / name, self.scratch / name)
        if readme:
            (self.scratch / name / "readme.cc").write_text(readme)
        build = self.scratch / name / "build"
        run("cmake", "-G", "Ninja", "-S", self.scratch / name, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            "-DCMAKE_BUILD_TYPE=Release", *flags)
        run("cmake", "--build", build)
        return build / "consumer"
