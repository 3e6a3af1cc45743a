"""Finds the tool `kelvin` and runs it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
from typing import Any, Iterator, Sequence

from kelvin._errors import Error, InternalError
from kelvin._readings import Readings

_USER_ERROR = 2
_INTERNAL_ERROR = 70
_SECONDS_TO_END = 2.0


def find_tool(tool: str | os.PathLike[str] | None = None) -> str:
    """The path of the tool: `tool`, or what KELVIN_TOOL names, or bin/kelvin of the prefix that this package is
    installed in, or build/kelvin of the checkout that it lies in, or `kelvin` on PATH.

        >>> kelvin.find_tool()
        '/usr/bin/kelvin'
    """
    for given, where in ((tool, "tool"), (os.environ.get("KELVIN_TOOL"), "KELVIN_TOOL")):
        if given:
            path = os.fspath(given)
            if not _is_program(path):
                raise Error(f"{where}: '{path}' is no program; it must be the path of kelvin's tool")
            return path
    beside = _beside_package()
    found = str(beside) if beside is not None else shutil.which("kelvin")
    if found is None:
        raise Error("the tool 'kelvin' was not found: build it ('make'), then install it ('make install'), or set "
                    "KELVIN_TOOL to its path (build/kelvin of the checkout)")
    return found


def run_tool(verb: str, words: Sequence[str], *, threads: int | None, quiet: bool,
             tool: str | os.PathLike[str] | None) -> Readings:
    """What `kelvin VERB WORDS -o json` prints. What it says on stderr goes to sys.stderr, and its error is raised."""
    command = [find_tool(tool), verb, *words, "-o", "json"]
    command += ["--threads", str(threads)] if threads is not None else []
    command += ["--quiet"] if quiet else []
    process, listener = None, None
    try:
        with _interrupts_held():
            process = _started(command)
            listener = _Listener(process, verb)
        output = process.stdout.read() if process.stdout else ""
        process.wait()
    except BaseException:  # Ctrl-C: the tool ends with who called it
        if process is not None:
            _end(process)
        raise
    finally:
        if listener is not None:
            listener.join()
        for stream in (process.stdout, process.stderr) if process is not None else ():
            if stream:
                stream.close()
    _check_end(process.returncode, verb, listener.last)
    return _readings_in(output, verb)


def _started(command: list[str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                encoding="utf-8", errors="replace")
    except OSError as error:
        raise Error(f"{command[0]}: cannot be started: {error.strerror}") from None


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits for the end: in between, a process may have started that nobody knows yet."""
    former = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(former):
        yield
        return
    held: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
    if held:
        former(*held[0])


class _Listener(threading.Thread):
    """Hands on what the tool says, but for the line that becomes the text of an exception."""

    def __init__(self, process: subprocess.Popen[str], verb: str) -> None:
        super().__init__(daemon=True)
        self.last = ""  # its error, else the last line
        self._has_error = False
        self._stream = process.stderr
        self._error_starts = (f"kelvin {verb}: ", "kelvin: ")
        self.start()

    def run(self) -> None:
        for line in self._stream or ():
            if line.startswith(self._error_starts):
                self.last, self._has_error = line.strip(), True
                continue
            if not self._has_error and line.strip():
                self.last = line.strip()
            if sys.stderr is not None:
                sys.stderr.write(line)
                sys.stderr.flush()


def _beside_package() -> pathlib.Path | None:
    folder = pathlib.Path(__file__).resolve().parent
    above = folder.parents
    if above[0].name in ("dist-packages", "site-packages"):
        # PREFIX/lib/python3/dist-packages/kelvin, or lib/python3.11/site-packages of a virtual environment
        tool = above[min(3, len(above) - 1)] / "bin" / "kelvin"
    else:
        tool = above[1] / "build" / "kelvin"
    return tool if _is_program(tool) else None


def _is_program(path: str | os.PathLike[str]) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _end(process: subprocess.Popen[str]) -> None:
    """The terminal has told it already; if it was not that, or it does not listen, it is told again, then killed."""
    try:
        for _ in range(2):  # the tool stops at the first signal where it can, and anywhere at the second
            try:
                process.wait(_SECONDS_TO_END)
                return
            except subprocess.TimeoutExpired:
                process.terminate()
        process.wait(_SECONDS_TO_END)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()


def _check_end(code: int, verb: str, last: str) -> None:
    if code == 0:
        return
    if code == _USER_ERROR:
        raise Error(last)
    if code == _INTERNAL_ERROR:
        raise InternalError(last)
    if code < 0:
        name = signal.Signals(-code).name
        hint = ", perhaps because memory ran out" if name == "SIGKILL" else ""
        raise Error(f"kelvin {verb}: was ended by {name}{hint}")
    raise Error(f"kelvin {verb}: ended with code {code}: {last}")


def _readings_in(output: str, verb: str) -> Readings:
    try:
        document: dict[str, Any] = json.loads(output)
        return Readings(document["readings"], document.get("caveats", ()))
    except (ValueError, KeyError, TypeError):
        raise InternalError(f"kelvin {verb}: printed no readings: {output[:200]!r}") from None
