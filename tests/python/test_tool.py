"""How the tool is found and run: with programs that play it."""
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from contextlib import redirect_stderr
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import kelvin  # noqa: E402

PACKAGE = pathlib.Path(kelvin.__file__).parent


class WithTools(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tool(self, script, name="kelvin"):
        """A program of this shell script."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path


class FindTool(WithTools):
    def found(self, package=PACKAGE, **environment):
        """What a new process finds, whose PATH has nothing but what is given."""
        command = [sys.executable, "-c", "import kelvin; print(kelvin.find_tool())"]
        environment = {"PATH": "/nonexistent", "PYTHONPATH": str(pathlib.Path(package).parent), **environment}
        result = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True)
        return result.stdout.strip() or result.stderr.strip().splitlines()[-1]

    def installed(self, place):
        """The package copied to a place where nothing is beside it."""
        target = self.folder / place / "kelvin"
        shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
        return target

    def test_takes_the_argument_then_the_environment(self):
        first, second = self.tool("", "first"), self.tool("", "second")
        with mock.patch.dict(os.environ, KELVIN_TOOL=str(second)):
            self.assertEqual(kelvin.find_tool(first), str(first))
            self.assertEqual(kelvin.find_tool(), str(second))

    def test_looks_into_the_prefix_that_the_package_is_in(self):
        package = self.installed("usr/lib/python3/dist-packages")
        tool = self.tool("", "usr/bin/kelvin")
        other = self.tool("", "path/kelvin")
        self.assertEqual(self.found(package, PATH=str(other.parent)), str(tool))
        package = self.installed("venv/lib/python3.11/site-packages")
        self.assertEqual(self.found(package, PATH=str(other.parent)), str(other))

    def test_looks_into_the_checkout(self):
        package = self.installed("checkout/python")
        tool = self.tool("", "checkout/build/kelvin")
        self.assertEqual(self.found(package), str(tool))

    def test_says_what_to_do_if_there_is_none(self):
        package = self.installed("alone")
        self.assertIn("kelvin.Error: the tool 'kelvin' was not found: build it ('make'), then install it ('make "
                      "install'), or set KELVIN_TOOL", self.found(package))
        self.assertIn(f"KELVIN_TOOL: '{self.folder}' is no program", self.found(package, KELVIN_TOOL=str(self.folder)))
        with self.assertRaisesRegex(kelvin.Error, "tool: '/nowhere' is no program"):
            kelvin.find_tool("/nowhere")


class RunTool(WithTools):
    def measure(self, script, **options):
        """Readings, and what was said on stderr."""
        said = io.StringIO()
        with redirect_stderr(said):
            readings = kelvin.measure("x.npz", tool=self.tool(script), **options)
        return readings, said.getvalue()

    def words(self, call, *arguments, **options):
        """What the tool is started with."""
        tool = self.tool(f'for word in "$@"; do echo "$word"; done > {self.folder}/words; echo \'{{"readings": []}}\'')
        call(*arguments, tool=tool, **options)
        return (self.folder / "words").read_text().splitlines()

    def test_gives_readings_with_their_caveats(self):
        readings, _ = self.measure("""echo '{"readings": [{"name": "accuracy", "value": 0.5}], "caveats": ["few"]}'""")
        self.assertIsInstance(readings, kelvin.Readings)
        self.assertEqual(readings, [{"name": "accuracy", "value": 0.5}])
        self.assertEqual(readings.caveats, ["few"])

    def test_hands_on_what_the_tool_says(self):
        _, said = self.measure("""echo 'measure: 10 %' >&2; echo 'warning: odd' >&2; echo '{"readings": []}'""")
        self.assertEqual(said, "measure: 10 %\nwarning: odd\n")

    # More than pipes hold: neither side may wait for the other.
    def test_takes_much_of_both_streams(self):
        readings, said = self.measure("""
            line=$(printf '%1000s' x)
            echo '{"readings": ['
            for i in 1 2 3 4 5 6 7 8 9 10; do
              for j in 1 2 3 4 5 6 7 8 9 10; do
                for k in 1 2 3; do echo "$line" >&2; done
                echo "{\\"name\\": \\"n\\", \\"value\\": 1, \\"layer\\": \\"$line$line\\"},"
              done
            done
            echo '{"name": "last", "value": 2}]}'""")
        self.assertEqual(len(readings), 101)
        self.assertEqual(len(said.splitlines()), 300)

    def test_raises_the_line_of_an_error(self):
        for code, error, text in ((2, kelvin.Error, "kelvin measure: x.npz: has no array 'labels'"),
                                  (70, kelvin.InternalError, "kelvin measure: internal error: oops")):
            said = io.StringIO()
            with self.assertRaises(error) as raised, redirect_stderr(said):
                script = f"echo 'warning: before' >&2; echo \"{text}\" >&2; exit {code}"
                kelvin.measure("x.npz", tool=self.tool(script))
            self.assertEqual(str(raised.exception), text)
            self.assertEqual(said.getvalue(), "warning: before\n")

    def test_says_how_else_the_tool_ended(self):
        for script, text in (("kill -9 $$", "kelvin measure: was ended by SIGKILL, perhaps because memory ran out"),
                             ("kill -15 $$", "kelvin measure: was ended by SIGTERM"),
                             ("echo cannot load >&2; exit 127", "kelvin measure: ended with code 127: cannot load")):
            with self.assertRaises(kelvin.Error) as raised:
                self.measure(script)
            self.assertEqual(str(raised.exception), text)
        for script in ("echo nothing", "echo '{}'", "echo '[]'"):
            with self.assertRaisesRegex(kelvin.InternalError, "kelvin measure: printed no readings"):
                self.measure(script)
        with self.assertRaisesRegex(kelvin.Error, "cannot be started: Exec format error"):
            broken = self.tool("")
            broken.write_bytes(b"\x7fELF")
            kelvin.measure("x.npz", tool=broken)

    def test_starts_it_with_what_was_asked_for(self):
        self.assertEqual(
            self.words(kelvin.measure, "x.npz", ["a", "b"], output="y.npz", threads=2, quiet=True,
                       measure__memory="8GiB", measure__a__gamma=1e-5, **{"measure.b.on": True, "measure.b.l2": [1, 2.5]}),
            ["measure", "x.npz", 'measure.memory="8GiB"', "measure.a.gamma=1e-05", "measure.b.on=true",
             "measure.b.l2=[1, 2.5]", "--measures", "a,b", "--output", "y.npz", "-o", "json", "--threads", "2", "--quiet"])
        self.assertEqual(
            self.words(kelvin.ood, id_train="a.npz", id_test=pathlib.Path("b.npz"), ood={"x": "c,d.npz", "y": "e.npz"},
                       detectors="msp,knn", output="scores"),
            ["ood", "--id-train", "a.npz", "--id-test", "b.npz", 'data.ood=["x=c,d.npz", "y=e.npz"]', "--detectors",
             "msp,knn", "--output", "scores", "-o", "json"])
        self.assertEqual(self.words(kelvin.ood, id_train="a.npz", id_test="b.npz", ood="c.npz")[5:6], ['data.ood=["c.npz"]'])
        self.assertEqual(self.words(kelvin.calibrate, "val.npz", "test.npz", bins=10, seed=3),
                         ["calibrate", "val.npz", "seed=3", "--test", "test.npz", "--bins", "10", "-o", "json"])

    def test_guards_paths_that_look_like_something_else(self):
        self.assertEqual(self.words(kelvin.measure, "a=b.npz")[1], "./a=b.npz")
        self.assertEqual(self.words(kelvin.measure, "-x.npz")[1], "./-x.npz")

    def test_rejects_what_cannot_be_said_to_it(self):
        for text, action in (
                ("a path must be a string or path-like, got a int", lambda: kelvin.measure(3)),
                ("measures: must be names, got []", lambda: kelvin.measure("x.npz", [])),
                ("detectors: must be names", lambda: kelvin.ood(id_train="a", id_test="b", ood="c", detectors=[1])),
                ("a: a setting must be a number, text, True, False or a list", lambda: kelvin.measure("x.npz", a=None)),
                ("ood: needs at least one dump", lambda: kelvin.ood(id_train="a", id_test="b", ood={})),
                ("ood: a name must be text without '=' and '/', got 'a/b'",
                 lambda: kelvin.ood(id_train="a", id_test="b", ood={"a/b": "c.npz"}))):
            with self.assertRaises(kelvin.Error) as raised:
                action()
            self.assertIn(text, str(raised.exception))


class Interrupt(WithTools):
    def interrupted(self, script, **patches):
        """Ctrl-C in a process that waits for this tool: what Python ends with, and whether the tool still runs."""
        tool = self.tool(f"echo $$ > {self.folder}/pid\n{script}")
        code = textwrap.dedent(f"""
            import kelvin, kelvin._tool
            kelvin._tool._SECONDS_TO_END = 0.3
            try:
                kelvin.measure("x.npz", tool={str(tool)!r})
            except KeyboardInterrupt:
                print("interrupted")
        """)
        caller = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)})
        pid_file = self.folder / "pid"
        deadline = time.monotonic() + 30
        while not (pid_file.exists() and pid_file.read_text().strip()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        caller.send_signal(signal.SIGINT)
        out, _ = caller.communicate(timeout=30)
        try:
            os.kill(int(pid_file.read_text()), 0)
        except ProcessLookupError:
            return out.strip(), False
        return out.strip(), True

    def test_ends_the_tool(self):
        self.assertEqual(self.interrupted("exec sleep 60"), ("interrupted", False))

    def test_ends_a_tool_that_does_not_listen(self):
        self.assertEqual(self.interrupted("trap '' INT TERM\nwhile :; do sleep 0.1; done"), ("interrupted", False))

    def test_lets_the_tool_finish_what_it_must(self):
        script = f"trap 'echo kept > {self.folder}/kept; exit 143' TERM\nwhile :; do sleep 0.05; done"
        self.assertEqual(self.interrupted(script), ("interrupted", False))
        self.assertTrue((self.folder / "kept").exists())


if __name__ == "__main__":
    unittest.main()
