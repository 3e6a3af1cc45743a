"""The package starts fast, is typed and documented, and is of the same version as the tool."""
import ast
import inspect
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import kelvin  # noqa: E402

PUBLIC = [getattr(kelvin, name) for name in kelvin.__all__]
FUNCTIONS = [each for each in PUBLIC if inspect.isfunction(each)]


class Import(unittest.TestCase):
    def test_loads_neither_torch_nor_numpy_nor_pandas(self):
        script = ("import sys, kelvin\n"
                  "try: kelvin.measure('nowhere.npz', tool='/bin/false')\n"
                  "except kelvin.Error: pass\n"
                  "print([name for name in ('torch', 'numpy', 'pandas') if name in sys.modules])")
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        out = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)
        self.assertEqual(out.stdout, "[]\n")

    def test_of_operators_waits_until_they_are_named(self):
        script = "import kelvin\ntry: kelvin.nothing\nexcept AttributeError as error: print(error)"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        out = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)
        self.assertEqual(out.stdout, "module 'kelvin' has no attribute 'nothing'\n")

    # The folder kelvin/ of a checkout, which Python takes for a package without files, is not it.
    def test_works_where_a_folder_has_its_name(self):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        script = "import kelvin; print(kelvin.__version__)"
        out = subprocess.run([sys.executable, "-c", script], env=environment, cwd=ROOT, check=True, capture_output=True,
                             text=True)
        self.assertEqual(out.stdout.strip(), kelvin.__version__)


class Version(unittest.TestCase):
    def test_is_that_of_the_project_and_of_the_tool(self):
        project = re.search(r"project\(kelvin VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
        self.assertEqual(project[1], kelvin.__version__)
        tool = os.environ.get("KELVIN_TOOL", str(ROOT / "build" / "kelvin"))
        said = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout
        self.assertTrue(said.startswith(f"kelvin {kelvin.__version__} "), said)

    def test_is_that_of_the_python_package(self):
        try:
            from setuptools import build_meta  # noqa: F401
        except ImportError:
            self.skipTest("no setuptools")
        script = ("from setuptools import build_meta\n"
                  "import sys\n"
                  "print(build_meta.prepare_metadata_for_build_wheel(sys.argv[1]))")
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "python"
            subprocess.run(["cp", "-r", str(ROOT / "python"), str(copy)], check=True)
            out = subprocess.run([sys.executable, "-c", script, folder], cwd=copy, check=True, capture_output=True, text=True)
            metadata = (pathlib.Path(folder) / out.stdout.splitlines()[-1] / "METADATA").read_text()
        self.assertIn(f"\nName: kelvin\nVersion: {kelvin.__version__}\n", metadata)


class Documentation(unittest.TestCase):
    def test_of_every_function_has_an_example(self):
        self.assertEqual(len(FUNCTIONS), 5)
        for each in [*FUNCTIONS, kelvin.Readings, kelvin.Readings.value, kelvin.Readings.select, kelvin.Readings.to_frame]:
            self.assertIn(">>> ", each.__doc__ or "", each)

    def test_of_every_public_thing_is_there(self):
        for each in PUBLIC:
            self.assertTrue(inspect.getdoc(each), each)


class Types(unittest.TestCase):
    def test_are_declared(self):
        self.assertTrue((ROOT / "python" / "kelvin" / "py.typed").exists())

    def test_are_given_for_every_parameter(self):
        for path in sorted((ROOT / "python" / "kelvin").glob("*.py")):
            for function in ast.walk(ast.parse(path.read_text())):
                if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    continue
                where = f"{path.name}: {function.name}"
                self.assertIsNotNone(function.returns, f"{where} says not what it returns")
                given = function.args
                for each in [*given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
                    is_typed = each is None or each.arg in ("self", "cls") or each.annotation is not None
                    self.assertTrue(is_typed, f"{where}: {each.arg if each else ''}")


if __name__ == "__main__":
    unittest.main()
