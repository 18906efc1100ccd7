"""scripts/setup in a sandbox: a PATH of stubs stands for the machine, so that every way to fail can be had at will."""

import os
import shutil
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("FOVEA_SOURCE_DIR", Path(__file__).parents[2]))
TOOLS = """bash cat chmod cp dirname echo env flock grep head ls mkdir mktemp mv paste printf rm sed sha256sum sleep sort
tail touch true xargs""".split()

# A Python that knows -m venv, -m pip and where its torch is (the file `torch` beside it, if any). With the file `venv_says`
# or `pip_says` in the sandbox, that module prints it and fails.
PYTHON = """#!/bin/bash
echo "python $*" >>"$SANDBOX/calls"
here=$(dirname "$0")
case $* in
  "-m venv "*)
    mkdir -p "$3/bin" "$3/lib/python3.11/site-packages"
    [[ -e $SANDBOX/venv_says ]] && { cat "$SANDBOX/venv_says"; exit 1; }
    cp "$SANDBOX/bin/python3" "$3/bin/python"
    echo "#!$PWD/$3/bin/python" >"$3/bin/tool" ;;
  *"-m pip install"*)
    [[ -e $SANDBOX/pip_says ]] && { cat "$SANDBOX/pip_says"; exit 1; }
    case $* in *torch==*) echo "$SANDBOX/new_torch" >"$here/torch" ;; esac ;;
  "-c import importlib"*)
    [[ -e $here/torch ]] && cat "$here/torch" ;;
esac
exit 0
"""


class Sandbox(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="fovea-setup-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.clone = self.root / "clone"
        self.bin = self.root / "bin"
        for folder in ("scripts", "python"):
            (self.clone / folder).mkdir(parents=True)
        self.bin.mkdir()
        shutil.copy(SOURCE / "scripts/setup", self.clone / "scripts/setup")
        shutil.copy(SOURCE / "python/requirements-test.txt", self.clone / "python")
        shutil.copy(SOURCE / "python/requirements-peers.txt", self.clone / "python")
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.stub("python3", PYTHON)
        self.stub("id", "#!/bin/bash\necho 0\n")
        self.stub("dpkg-query", "#!/bin/bash\nfor p in \"$@\"; do echo \"ii $p\"; done\n")
        self.stub("apt-get", "#!/bin/bash\necho \"apt-get $*\" >>\"$SANDBOX/calls\"\n")
        self.libtorch("new_torch", (2, 13))

    def stub(self, name, text):
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def libtorch(self, name, version, abi=1):
        folder = self.root / name
        for sub in ("lib", "include/torch/headeronly", "share/cmake/Torch"):
            (folder / sub).mkdir(parents=True)
        (folder / "lib/libtorch_cpu.so").touch()
        (folder / "__init__.py").touch()
        (folder / "include/torch/headeronly/version.h").write_text(
            "#define TORCH_VERSION_MAJOR %d\n#define TORCH_VERSION_MINOR %d\n" % version)
        (folder / "share/cmake/Torch/TorchConfig.cmake").write_text(f"-D_GLIBCXX_USE_CXX11_ABI={abi}\n")
        return folder

    def setup(self, *arguments, **environment):
        environment = {"PATH": str(self.bin), "SANDBOX": str(self.root), "HOME": str(self.root), **environment}
        return subprocess.run([str(self.clone / "scripts/setup"), *arguments], env=environment, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def calls(self):
        path = self.root / "calls"
        return path.read_text() if path.exists() else ""

    def assert_fails(self, outcome, *words):
        self.assertEqual(outcome.returncode, 1, outcome.stdout + outcome.stderr)
        self.assertEqual(outcome.stderr.count("\n"), 1, outcome.stderr)
        for word in words:
            self.assertIn(word, outcome.stderr)
        self.assertFalse((self.clone / ".venv.partial").exists())
        self.assertFalse(list(self.clone.glob(".cache/setup-*")))


class Succeeds(Sandbox):
    def test_makes_a_venv_with_torch_once(self):
        outcome = self.setup()
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertIn("torch==2.13.0", self.calls())
        self.assertNotIn("apt-get", self.calls())
        self.assertTrue((self.clone / ".venv/bin/python").exists())
        self.assertIn("/clone/.venv/bin/python", (self.clone / ".venv/bin/tool").read_text())
        before = self.calls()
        again = self.setup()
        self.assertEqual((again.returncode, again.stdout), (0, ""))
        self.assertEqual(self.calls(), before)

    def test_a_change_of_the_script_or_a_lost_libtorch_runs_it_again(self):
        self.setup()
        with open(self.clone / "scripts/setup", "a") as script:
            script.write("# changed\n")
        self.assertIn("done", self.setup().stdout)
        self.assertEqual(self.setup().stdout, "")
        shutil.rmtree(self.clone / ".venv")
        (self.root / "new_torch/lib/libtorch_cpu.so").rename(self.root / "moved")
        self.assertNotEqual(self.setup().stdout, "")

    def test_the_active_pythons_torch_is_taken(self):
        self.libtorch("active", (2, 7))
        (self.bin / "torch").write_text(str(self.root / "active"))
        outcome = self.setup()
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertNotIn("pip install", self.calls())
        self.assertFalse((self.clone / ".venv").exists())

    def test_tests_see_the_active_pythons_torch_from_venv(self):
        self.libtorch("active", (2, 7))
        (self.bin / "torch").write_text(str(self.root / "active"))
        outcome = self.setup("tests")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertNotIn("torch==", self.calls())
        self.assertIn("requirements-test.txt", self.calls())
        path = self.clone / ".venv/lib/python3.11/site-packages/libtorch.pth"
        self.assertEqual(path.read_text().strip(), str(self.root))

    def test_an_old_active_torch_is_passed_over(self):
        for name, version, abi in (("old", (2, 3), 1), ("old_abi", (2, 6), 0)):
            self.libtorch(name, version, abi)
            (self.bin / "torch").write_text(str(self.root / name))
            shutil.rmtree(self.clone / ".cache", ignore_errors=True)
            shutil.rmtree(self.clone / ".venv", ignore_errors=True)
            outcome = self.setup()
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            self.assertIn("too old", outcome.stdout)
            self.assertTrue((self.clone / ".venv").exists())

    def test_missing_packages_are_installed(self):
        self.stub("dpkg-query", "#!/bin/bash\necho 'ii cmake'\nexit 1\n")
        outcome = self.setup()
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertIn("apt-get update", self.calls())
        install = next(line for line in self.calls().splitlines() if "apt-get install" in line).split()
        self.assertIn("libhwy-dev", install)
        self.assertNotIn("cmake", install)
        self.assertNotIn("chromium", install)

    def test_the_tests_get_nvrtc_unless_a_torch_for_cuda_has_brought_its_own(self):
        self.setup("tests")
        self.assertIn("--no-deps nvidia-cuda-nvrtc==13.", self.calls())
        own = self.clone / ".venv/lib/python3.11/site-packages/nvidia/cu13/lib"
        own.mkdir(parents=True)
        (own / "libnvrtc.so.13").write_text("")
        (self.root / "calls").write_text("")
        shutil.rmtree(self.clone / ".cache")
        self.assertEqual(self.setup("tests").returncode, 0)
        self.assertNotIn("nvrtc", self.calls())

    def test_the_build_alone_gets_no_nvrtc(self):
        self.setup()
        self.assertNotIn("nvrtc", self.calls())

    def test_what_the_tests_need_includes_what_the_build_needs(self):
        self.setup("tests")
        self.assertEqual(self.setup().stdout, "")

    def test_clang_comes_with_the_fuzzers_only(self):
        self.stub("dpkg-query", "#!/bin/bash\nexit 1\n")
        self.setup("tests")
        self.assertNotIn("clang", self.calls())
        self.setup("fuzz")
        self.assertIn("clang libclang-rt-14-dev", self.calls())
        before = self.calls()
        self.assertEqual(self.setup("fuzz").stdout + self.setup().stdout, "")
        self.assertEqual(self.calls(), before)

    def test_chromium_comes_with_the_tests_only(self):
        self.stub("dpkg-query", "#!/bin/bash\nexit 1\n")
        self.setup("tests")
        self.assertIn("chromium", self.calls())

    def test_the_cross_compiler_comes_with_arm_only_and_without_torch(self):
        self.stub("dpkg-query", "#!/bin/bash\nexit 1\n")
        outcome = self.setup("arm")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        install = next(line for line in self.calls().splitlines() if "apt-get install" in line).split()
        for package in ("g++-aarch64-linux-gnu", "qemu-user", "libhwy-dev", "googletest"):
            self.assertIn(package, install)
        self.assertNotIn("libpng-dev", install)
        self.assertNotIn("torch==", self.calls())
        self.assertFalse((self.clone / ".venv").exists())
        self.assertEqual(self.setup("arm").stdout, "")
        # It does not stand for the others, nor they for it.
        self.assertIn("torch==", (self.setup(), self.calls())[1])
        self.setup("tests")
        (self.clone / ".cache/setup-arm").unlink()
        self.assertIn("done", self.setup("arm").stdout)

    def test_what_is_built_by_clang_installs_clang(self):
        for target in ("clang", "fuzz"):
            steps = subprocess.run(["make", "--dry-run", "--directory", SOURCE, target], capture_output=True, text=True, check=True).stdout
            self.assertIn("scripts/setup fuzz", steps, target)

    def test_sudo_serves_where_root_is_not(self):
        self.stub("dpkg-query", "#!/bin/bash\nexit 1\n")
        self.stub("id", "#!/bin/bash\necho 1000\n")
        self.stub("sudo", "#!/bin/bash\necho sudo >>\"$SANDBOX/calls\"; \"$@\"\n")
        self.assertEqual(self.setup().returncode, 0)
        self.assertIn("sudo\napt-get update", self.calls())

    def test_without_root_or_debian_it_lists_what_to_install_and_goes_on(self):
        self.stub("dpkg-query", "#!/bin/bash\nexit 1\n")
        self.stub("id", "#!/bin/bash\necho 1000\n")
        outcome = self.setup()
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertIn("ask for: apt-get install g++ cmake", outcome.stdout)
        (self.bin / "dpkg-query").unlink()
        shutil.rmtree(self.clone / ".cache")
        outcome = self.setup()
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertIn("not a Debian system", outcome.stdout)
        self.assertIn("libhwy-dev", outcome.stdout)

    def test_half_a_venv_is_made_anew(self):
        for name in (".venv", ".venv.partial"):
            (self.clone / name / "bin").mkdir(parents=True)
        (self.clone / ".venv/leftover").touch()
        outcome = self.setup()
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertFalse((self.clone / ".venv.partial").exists())
        self.assertFalse((self.clone / ".venv/leftover").exists())
        self.assertTrue((self.clone / ".venv/bin/torch").exists())


class FailsWithOneLine(Sandbox):
    def apt_says(self, text):
        self.stub("dpkg-query", "#!/bin/bash\nexit 1\n")
        self.stub("apt-get", f"#!/bin/bash\necho \"{text}\"\nexit 100\n")

    def test_no_network_for_apt(self):
        self.apt_says("E: Failed to fetch x  Could not resolve 'y'")
        self.assert_fails(self.setup(), "no network", "run make again")

    def test_disk_full_for_apt(self):
        self.apt_says("E: You don't have enough free space in /var/cache/apt/archives/.")
        self.assert_fails(self.setup(), "disk full")

    def test_apt_is_busy(self):
        self.apt_says("E: Could not get lock /var/lib/dpkg/lock-frontend.")
        self.assert_fails(self.setup(), "another apt-get is running")

    def test_anything_else_gives_the_last_line_and_the_log(self):
        self.apt_says("E: Unable to locate package libhwy-dev")
        self.assert_fails(self.setup(), "Unable to locate package libhwy-dev", ".cache/setup.log")
        self.assertIn("Unable to locate", (self.clone / ".cache/setup.log").read_text())

    def test_no_venv_module(self):
        (self.root / "venv_says").write_text("The virtual environment was not created: ensurepip is not available.\n")
        self.assert_fails(self.setup(), "no venv module", "python3-venv")
        self.assertFalse((self.clone / ".venv").exists())

    def test_no_network_for_pip(self):
        (self.root / "pip_says").write_text("NewConnectionError: Temporary failure in name resolution\n"
                                            "ERROR: No matching distribution found for torch==2.13.0\n")
        self.assert_fails(self.setup(), "no network")
        self.assertFalse((self.clone / ".venv").exists())

    def test_no_wheel_for_this_python(self):
        (self.root / "pip_says").write_text("ERROR: No matching distribution found for torch==2.13.0\n")
        self.assert_fails(self.setup(), "3.10 to 3.13", "LIBTORCH_DIR")

    def test_disk_full_for_pip(self):
        (self.root / "pip_says").write_text("ERROR: Could not install: [Errno 28] No space left on device\n")
        self.assert_fails(self.setup(), "disk full")
        self.assertFalse((self.clone / ".venv").exists())

    def test_failed_test_requirements_keep_a_complete_venv(self):
        self.setup()
        shutil.rmtree(self.clone / ".cache")
        (self.root / "pip_says").write_text("Max retries exceeded\n")
        self.assert_fails(self.setup("tests"), "no network")
        self.assertTrue((self.clone / ".venv/bin/torch").exists())

    def test_libtorch_given_is_too_old(self):
        self.assert_fails(self.setup(LIBTORCH_DIR=str(self.libtorch("old", (2, 5)))), "2.5", "too old", "2.6 or newer")
        self.assert_fails(self.setup(LIBTORCH_DIR=str(self.libtorch("old_abi", (2, 6), 0))), "too old", "2.7")

    def test_libtorch_given_is_none(self):
        self.assert_fails(self.setup(LIBTORCH_DIR="/nowhere"), "/nowhere", "include/ and lib/")

    def test_unknown_group(self):
        self.assert_fails(self.setup("everything"), "everything")


if __name__ == "__main__":
    unittest.main()
