"""What `cmake --install` and `pip install` leave, used from outside the tree and from a prefix that was moved."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["FOVEA_SOURCE_DIR"])
BUILD = Path(os.environ["FOVEA_BUILD_DIR"])
LIBTORCH = os.environ["LIBTORCH_DIR"]


def readme(language):
    """The README's first block in that language."""
    return re.search(rf"```{language}\n(.*?)```", (SOURCE / "README.md").read_text(), re.DOTALL).group(1)


def run(*command, **options):
    outcome = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if outcome.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{outcome.stdout}")
    return outcome.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="fovea-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        run("cmake", "--install", BUILD, "--prefix", cls.scratch / "installed")
        cls.prefix = cls.scratch / "moved" / "here"
        cls.prefix.parent.mkdir()
        (cls.scratch / "installed").rename(cls.prefix)

    def consumer(self, name, *flags, readme=None):
        shutil.copytree(SOURCE / "tests/package" / name, self.scratch / name)
        if readme:
            (self.scratch / name / "readme.cc").write_text(readme)
        build = self.scratch / name / "build"
        run("cmake", "-G", "Ninja", "-S", self.scratch / name, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            "-DCMAKE_BUILD_TYPE=Release", *flags)
        run("cmake", "--build", build)
        return build / "consumer"

    def test_the_installed_files_do_not_name_where_they_were_made(self):
        for path in self.prefix.rglob("*.cmake"):
            text = path.read_text()
            self.assertNotIn(str(SOURCE), text, path)
            self.assertNotIn(str(self.scratch / "installed"), text, path)

    def test_engine_serves_a_program_and_brings_no_library_along(self):
        # No libtorch to be found: the engine must not ask for it.
        program = self.consumer("engine", "-DCMAKE_DISABLE_FIND_PACKAGE_Libtorch=ON")
        self.assertEqual(run(program).split()[:4], ["1.00", "1.50", "2.00", "2.50"])
        needed = [line.split()[0] for line in run("ldd", program).splitlines()]
        known = ("linux-vdso", "libstdc++", "libm.", "libgcc_s", "libc.", "/lib", "ld-linux")
        self.assertEqual([name for name in needed if not name.startswith(known)], [])
        self.assertLess(program.stat().st_size, 8e6)

    def test_fovea_serves_a_program_and_the_readmes(self):
        program = self.consumer("fovea", f"-DLIBTORCH_DIR={LIBTORCH}", readme=readme("cpp"))
        self.assertEqual(run(program), "ok\n")
        run(program.with_name("readme"))

    def test_the_installed_command_runs(self):
        self.assertIn("libtorch", run(self.prefix / "bin/fovea", "--version"))

    def test_the_python_package_imports(self):
        if subprocess.run([sys.executable, "-c", "import torch, scikit_build_core, pip"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest(f"{sys.executable} has no torch, scikit-build-core or pip")
        site = self.scratch / "site"
        run(sys.executable, "-m", "pip", "install", SOURCE, "--no-build-isolation", "--no-deps", "--target", site)
        environment = {name: value for name, value in os.environ.items() if name != "FOVEA_LIBRARY"}
        environment["PYTHONPATH"] = str(site)
        said = run(sys.executable, "-c", "import fovea, torch; print(fovea.__file__, torch.ops.fovea.simd_target())",
                   cwd=self.scratch, env=environment)
        self.assertTrue(said.startswith(str(site)), said)
        run(sys.executable, "-c", readme("python"), cwd=self.scratch, env=environment)
        bundled = [path.name for path in site.rglob("*.so*")]
        self.assertEqual(bundled, ["libfovea.so"])


if __name__ == "__main__":
    unittest.main()
