"""What `cmake --install` leaves, used from outside the tree and from a prefix that was moved."""

import unittest

from installed import LIBTORCH, SOURCE, Installed, readme, run


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


if __name__ == "__main__":
    unittest.main()
