"""What `cmake --install` and `pip install` leave, used from outside the tree and from a prefix that was moved."""

import os
import re
import subprocess
import sys
import unittest

from installed import LIBTORCH, SOURCE, Installed, run

def readme(language):
    """The README's first block in that language."""
    return re.search(rf"```{language}\n(.*?)```", (SOURCE / "README.md").read_text(), re.DOTALL).group(1)


class Package(Installed):
    def test_the_installed_files_do_not_name_where_they_were_made(self):
        for path in self.prefix.rglob("*.cmake"):
            text = path.read_text()
            self.assertNotIn(str(SOURCE), text, path)
            self.assertNotIn(str(self.scratch / "installed"), text, path)

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
