"""`measure`, `ood` and `calibrate`: the verbs of the tool that take dumps."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Mapping, Sequence, Union

from kelvin._errors import Error
from kelvin._readings import Readings
from kelvin._tool import run_tool

Path = Union[str, "os.PathLike[str]"]
Names = Union[str, Sequence[str], None]


def measure(
    path: Path,
    measures: Names = None,
    *,
    output: Path | None = None,
    threads: int | None = None,
    quiet: bool = False,
    tool: Path | None = None,
    **settings: Any,
) -> Readings:
    """Measures a dump (or a run folder): ranks, spectra, neural collapse, calibration, accuracy.

    measures: names, as `kelvin list measures` prints them; all that the dump has enough for unless some are named.
    output: an npz for whole spectra and matrices.
    threads: of the tool; by default one per core.
    quiet: nothing on stderr but warnings.
    tool: the path of the tool, see `find_tool`.
    settings: any of the tool's; a dot in a name is written as `__`.

        >>> readings = kelvin.measure("test.npz", ["solution_rank", "layer_spectrum"], measure__memory="8GiB")
        >>> readings.value("solution_rank")
        9.0
    """
    words = [_path_word(path), *_setting_words(settings)]
    if measures is not None:
        words += ["--measures", _names("measures", measures)]
    if output is not None:
        words += ["--output", _path_word(output)]
    return run_tool("measure", words, threads=threads, quiet=quiet, tool=tool)


def ood(
    *,
    id_train: Path,
    id_test: Path,
    ood: Mapping[str, Path] | Sequence[Path] | Path,
    detectors: Names = None,
    output: Path | None = None,
    threads: int | None = None,
    quiet: bool = False,
    tool: Path | None = None,
    **settings: Any,
) -> Readings:
    """How well detectors tell OOD samples from test samples: AUROC, AUPR, FPR95 by both definitions.

    id_train: a dump of training samples, with labels, on which detectors are fitted.
    id_test: a dump of test samples.
    ood: dumps of OOD samples by name; without names they are called as their files.
    detectors: names, as `kelvin list detectors` prints them; all that can be fitted unless some are named.
    output: a folder for the scores, as CSV.

    The other arguments are those of `measure`.

        >>> readings = kelvin.ood(id_train="train.npz", id_test="test.npz", ood={"svhn": "svhn.npz"})
        >>> readings.value("auroc", detector="neco", ood="svhn")
        0.951
    """
    if isinstance(ood, (str, os.PathLike)):
        ood = [ood]
    named = [_named_dump(*each) for each in ood.items()] if isinstance(ood, Mapping) else [_path_word(p) for p in ood]
    if not named:
        raise Error("ood: needs at least one dump of OOD samples")
    # As a setting, because a flag would take the commas of a path for those between paths.
    words = ["--id-train", _path_word(id_train), "--id-test", _path_word(id_test)]
    words += _setting_words({"data.ood": named, **settings})
    if detectors is not None:
        words += ["--detectors", _names("detectors", detectors)]
    if output is not None:
        words += ["--output", _path_word(output)]
    return run_tool("ood", words, threads=threads, quiet=quiet, tool=tool)


def calibrate(
    val: Path,
    test: Path | None = None,
    *,
    bins: int | None = None,
    output: Path | None = None,
    threads: int | None = None,
    quiet: bool = False,
    tool: Path | None = None,
    **settings: Any,
) -> Readings:
    """Calibration errors before and after a temperature that is fitted on `val`, measured on `test`.

    test: without it, half of `val`, chosen by `seed`, tests what the other half fitted.
    bins: of confidence; 15 by default.
    output: an npz for reliability diagrams.

    The other arguments are those of `measure`. Readings have `scaling` in their definitions:

        >>> readings = kelvin.calibrate("val.npz", "test.npz")
        >>> readings.value("temperature")
        2.35
        >>> readings.value("ece", scaling="none"), readings.value("ece", scaling="temperature")
        (0.052, 0.0076)
    """
    words = [_path_word(val), *_setting_words(settings)]
    for flag, value in (("--test", test), ("--output", output)):
        words += [flag, _path_word(value)] if value is not None else []
    words += ["--bins", str(bins)] if bins is not None else []
    return run_tool("calibrate", words, threads=threads, quiet=quiet, tool=tool)


def _path_word(path: Path) -> str:
    """A path that the tool takes neither for a flag nor for a setting."""
    if not isinstance(path, (str, os.PathLike)):
        raise Error(f"a path must be a string or path-like, got a {type(path).__name__}")
    word = os.fspath(path)
    return f"./{word}" if word.startswith("-") or re.match(r"[a-z0-9_.]+=", word) else word


def _named_dump(name: str, path: Path) -> str:
    if not isinstance(name, str) or not name or "=" in name or "/" in name:
        raise Error(f"ood: a name must be text without '=' and '/', got {name!r}")
    return f"{name}={os.fspath(path)}"


def _names(argument: str, names: str | Sequence[str]) -> str:
    words = [names] if isinstance(names, str) else list(names)
    if not words or not all(isinstance(word, str) and word for word in words):
        raise Error(f"{argument}: must be names, got {names!r}")
    return ",".join(words)


def _setting_words(settings: Mapping[str, Any]) -> list[str]:
    return [f"{key.replace('__', '.')}={_toml_text(key, value)}" for key, value in settings.items()]


def _toml_text(key: str, value: Any) -> str:
    if hasattr(value, "item"):  # a number of NumPy or PyTorch
        value = value.item()
    if isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml_text(key, each) for each in value) + "]"
    raise Error(f"{key}: a setting must be a number, text, True, False or a list of these, got {value!r}")
