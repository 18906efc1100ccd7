"""What component `engine` of an installation holds, and what a program makes of it. No libtorch anywhere."""

import re
import shutil
import unittest

from installed import SOURCE, Installed, run


def version():
    """As include/fovea/version.h says it."""
    return ".".join(re.findall(r"#define FOVEA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", (SOURCE / "include/fovea/version.h").read_text()))


class Engine(Installed):
    components = ("engine",)

    def test_serves_a_program_that_has_a_highway_of_its_own(self):
        # No libtorch to be found: the engine must not ask for it.
        program = self.consumer("engine", "-DCMAKE_DISABLE_FIND_PACKAGE_Libtorch=ON")
        said = run(program).split()
        self.assertEqual(said[:4], ["1.00", "1.50", "2.00", "2.50"])
        self.assertEqual(said[5:], [version(), "0"], "the version, and how often the program's own Highway was asked")
        needed = [line.split()[0] for line in run("ldd", program).splitlines()]
        known = ("linux-vdso", "libstdc++", "libm.", "libgcc_s", "libc.", "/lib", "ld-linux")
        self.assertEqual([name for name in needed if not name.startswith(known)], [])
        self.assertLess(program.stat().st_size, 8e6)

    def test_serves_a_program_by_pkg_config(self):
        if not shutil.which("pkg-config"):
            self.skipTest("no pkg-config")
        folder = next(self.prefix.rglob("fovea-engine.pc")).parent
        flags = run("env", f"PKG_CONFIG_PATH={folder}", "pkg-config", "--cflags", "--libs", "fovea-engine").split()
        self.assertEqual(run("env", f"PKG_CONFIG_PATH={folder}", "pkg-config", "--modversion", "fovea-engine").strip(), version())
        program = self.scratch / "by_pkg_config"
        sources = [SOURCE / "tests/package/engine" / name for name in ("main.cc", "own_highway.cc")]
        run("c++", "-std=c++20", *sources, "-o", program, *flags)
        self.assertEqual(run(program).split()[:4], ["1.00", "1.50", "2.00", "2.50"])

    def test_every_header_that_is_named_is_there_and_compiles_alone(self):
        headers = sorted((self.prefix / "include").rglob("*.h"))
        self.assertTrue(headers)
        for header in headers:
            for named in re.findall(r"fovea/[\w/]+\.h", header.read_text()):
                self.assertTrue((self.prefix / "include" / named).exists(), f"{header.name} names {named}")
        alone = self.scratch / "alone.cc"
        for header in headers:
            alone.write_text(f"#include <{header.relative_to(self.prefix / 'include')}>\n")
            run("c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", self.prefix / "include", alone)

    def test_holds_the_licence(self):
        licence = list(self.prefix.rglob("LICENSE"))
        self.assertEqual([path.read_text() for path in licence], [(SOURCE / "LICENSE").read_text()])

    def test_defines_nothing_in_highways_namespace(self):
        archive = next(self.prefix.rglob("libfovea_engine.a"))
        defined = run("nm", "--defined-only", "-C", archive)
        self.assertIn(" fovea_hwy::SupportedTargets", defined)
        self.assertEqual([line for line in defined.splitlines() if re.search(r"(?<![\w:])hwy::", line)], [])


if __name__ == "__main__":
    unittest.main()
