"""libfovea.so and the command as they are installed: their names, what they show, where they look for others; what find_package says
when it fails; and the tree as a part of another project."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from installed import BUILD, CONSUMERS, LIBTORCH, SOURCE, Installed, run


def dynamic(path, tag):
    """The values of a tag in an ELF file's dynamic section."""
    return re.findall(rf"\({tag}\).*\[(.*)\]", run("readelf", "-d", path))


def declared(header):
    """Names of the functions a header declares and does not define. Declarations in a namespace begin a line."""
    text = re.sub(r"//.*", "", header.read_text())
    return set(re.findall(r"^(?!using|template|inline|struct|class|enum|#|requires)[\w:<>,&* ]+?[ &*](\w+)\((?:[^;{}]|\{\})*\)(?: const)?;", text, re.MULTILINE))


class Library(Installed):
    components = ("engine", "fovea", "command")

    def setUp(self):
        self.library = next(self.prefix.rglob("libfovea.so"))

    def test_its_name_has_a_version(self):
        name, = dynamic(self.library, "SONAME")
        self.assertRegex(name, r"^libfovea\.so\.\d+\.\d+$")
        self.assertTrue((self.library.parent / name).exists())
        self.assertIn(name, dynamic(next(self.prefix.rglob("libfovea_program.so")), "NEEDED"))

    def test_shows_what_the_headers_declare_and_nothing_else(self):
        shown = [line.split(" ", 2)[2] for line in run("nm", "-D", "--defined-only", "-C", self.library).splitlines()]
        ours = [name for name in shown if re.match(r"(vtable for |typeinfo (name )?for |(non-)?virtual thunk to )?fovea::", name)]
        self.assertEqual(sorted(set(shown) - set(ours)), [])
        # Internal namespaces and files' own names.
        self.assertEqual([name for name in ours if re.match(r"fovea::(operators|composed|choice)::|.*project_add_norm", name)], [])
        self.assertLess(len(ours), 500)
        plain = {re.sub(r"[(\[].*", "", name).split("::")[-1] for name in ours}  # without arguments and [abi:...]
        for header in ("attend.h", "engine.h", "ranks.h", "nn/multi_head.h", "nn/beam_search.h", "nn/transformer.h"):
            names = declared(SOURCE / "include/fovea" / header)
            self.assertTrue(names, header)
            self.assertEqual(sorted(names - plain), [], header)
        for header in (SOURCE / "include/fovea/nn").glob("*.h"):
            for name in re.findall(r"^class (\w+Impl)", header.read_text(), re.MULTILINE):
                self.assertTrue(any(f"fovea::nn::{name}::{name}(" in shown_name for shown_name in ours), name)

    def test_looks_for_others_beside_itself_or_in_libtorch(self):
        for path in [*self.library.parent.glob("libfovea*.so*"), self.prefix / "bin/fovea"]:
            allowed = {"$ORIGIN", "$ORIGIN/../" + self.library.parent.name, f"{LIBTORCH}/lib"}
            if path.name.startswith("libfovea.so"):
                allowed = {"$ORIGIN"}
            for place in ":".join(dynamic(path, "RUNPATH") + dynamic(path, "RPATH")).split(":"):
                self.assertIn(place, allowed, path)

    def find(self, prefix, components, **variables):
        """What CMake says about find_package(Fovea) in a project outside the tree, in one line."""
        build = self.scratch / "missing"
        flags = [f"-D{name}={value}" for name, value in variables.items()]
        outcome = subprocess.run(["cmake", "-S", str(CONSUMERS / "missing"), "-B", str(build), "-UFovea_DIR", "-ULIBTORCH_DIR",
                                  f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCOMPONENTS={components}", *flags], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "LIBTORCH_DIR": ""})
        return outcome.returncode, re.sub(r"\s+", " ", outcome.stdout)

    def test_find_package_that_fails_says_why(self):
        code, said = self.find(self.prefix, "fovea", LIBTORCH_DIR="/nowhere")
        self.assertNotEqual(code, 0)
        self.assertIn("Reason given by package: component fovea needs libtorch", said)
        self.assertIn("-DLIBTORCH_DIR=<folder with include/ and lib/>", said)
        self.assertIn("/nowhere: holds no lib/libtorch_cpu.so", said)

        other = self.scratch / "other_libtorch"
        for folder in ("lib", "include/torch/headeronly"):
            (other / folder).mkdir(parents=True)
        (other / "lib/libtorch_cpu.so").touch()
        (other / "include/torch/headeronly/version.h").write_text(
            "#define TORCH_VERSION_MAJOR 9\n#define TORCH_VERSION_MINOR 8\n#define TORCH_VERSION_PATCH 7\n")
        code, said = self.find(self.prefix, "fovea", LIBTORCH_DIR=other)
        self.assertNotEqual(code, 0)
        self.assertIn("libtorch 9.8.7 is not the", said)

        code, said = self.find(self.prefix, "engines")
        self.assertNotEqual(code, 0)
        self.assertIn("there is no component 'engines', expected engine or fovea", said)

        alone = self.scratch / "alone"
        shutil.copytree(self.prefix, alone)
        for path in alone.rglob("FoveaTorch*.cmake"):
            path.unlink()
        code, said = self.find(alone, "fovea")
        self.assertNotEqual(code, 0)
        self.assertIn("this is an installation of the engine alone", said)

    def test_the_engine_is_found_where_there_is_no_libtorch(self):
        code, said = self.find(self.prefix, "engine", LIBTORCH_DIR="/nowhere")
        self.assertEqual(code, 0, said)
        self.assertNotIn("libtorch", said)
        code, said = self.find(self.prefix, "", LIBTORCH_DIR="/nowhere")
        self.assertEqual(code, 0, said)
        self.assertIn("Fovea::fovea is left out: component fovea needs libtorch", said)


class Programs(unittest.TestCase):
    def test_none_holds_a_part_of_the_library_that_it_links(self):
        """Twice in a process, operators would register twice, and what a static object holds would be freed twice."""
        plan = (BUILD / "build.ninja").read_text()
        links = {name: (set(objects.split()), libraries.split()) for name, objects, libraries in re.findall(
            r"^build (\S+): CXX_(?:EXECUTABLE|SHARED_LIBRARY)_LINKER\S* ([^|\n]*)\|([^|\n]*)", plan, re.MULTILINE)}
        library, = (name for name in links if re.fullmatch(r"lib/libfovea\.so[.\d]*", name))
        inside, _ = links.pop(library)
        self.assertTrue(inside)
        programs = {name: objects for name, (objects, libraries) in links.items() if library in libraries}
        self.assertIn("bin/library_test", programs)
        self.assertEqual([name for name, objects in programs.items() if objects & inside], [])


class PartOfAnotherProject(unittest.TestCase):
    def test_leaves_the_project_its_build_type_flags_and_folders(self):
        build = Path(tempfile.mkdtemp(prefix="fovea-parent-"))
        self.addCleanup(shutil.rmtree, build)
        run("cmake", "-G", "Ninja", "-S", CONSUMERS / "subproject", "-B", build, f"-DFOVEA={SOURCE}", "-DFOVEA_TORCH=OFF",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", env={**os.environ, "CI": "1"})
        cache = (build / "CMakeCache.txt").read_text()
        self.assertRegex(cache, r"(?m)^CMAKE_BUILD_TYPE:\w+=$")
        commands = {Path(entry["file"]).name: entry["command"] for entry in json.loads((build / "compile_commands.json").read_text())}
        engine, own = commands["targets.cc"], commands["main.cc"]
        self.assertIn("-DPARENT", engine)  # the project's flags are ours
        self.assertNotIn("-Werror", engine)
        self.assertNotIn("ccache", engine + own)
        self.assertIn("-O3", engine)  # no build type, and fast all the same
        for flag in ("-fPIC", "-Wextra", "-Werror", "-O", "hwy"):
            self.assertNotIn(flag, own)
        self.assertNotIn("test", " ".join(commands))
        self.assertNotIn("Fovea", (build / "cmake_install.cmake").read_text().replace(str(SOURCE), ""))


if __name__ == "__main__":
    unittest.main()
