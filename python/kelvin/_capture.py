"""`capture`: what a network does with the images of a loader, as a dump for the tool."""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
import pathlib
import warnings
from typing import TYPE_CHECKING, Any, Iterable, Sequence

from kelvin._dump_writer import DumpWriter
from kelvin._errors import Error
from kelvin._layers import Layers
from kelvin._progress import Progress

if TYPE_CHECKING:
    import torch
    from torch import nn
@dataclasses.dataclass(frozen=True)
class Captured(os.PathLike):  # type: ignore[type-arg]
    """A dump that `capture` wrote; every function of kelvin that takes a path takes it."""

    path: pathlib.Path
    samples: int
    arrays: dict[str, tuple[int, ...]]
    """Shapes by name."""
    notes: tuple[str, ...] = ()
    """What was left out and why; also given as warnings."""

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        lines = [f"{self.path}: {self.samples} samples"]
        lines += [f"  {name} {'x'.join(map(str, shape)) or 'scalar'}" for name, shape in self.arrays.items()]
        return "\n".join(lines)


def capture(
    model: nn.Module,
    loader: Iterable[Any],
    path: str | os.PathLike[str],
    *,
    layers: Layers = None,
    pool: str | int | None = None,
    device: str | torch.device | None = None,
    max_samples: int | None = None,
    temperature: float | None = None,
    half: bool = False,
    inputs: str | Sequence[str] | None = None,
    labels: str | None = None,
    progress: bool = True,
) -> Captured:
    """Shows `model` every batch of `loader` and writes what it does to `path`, an npz for `measure`, `ood`, `calibrate`.

    The file has logits, labels, what the classifier (the last `nn.Linear`) reads as `features`, its weight and bias;
    and the outputs of `layers` as `layer/NAME`. It appears when it is whole. Arrays are written batch by batch, so
    memory does not grow with the number of samples. The model predicts in evaluation mode without gradients;
    afterwards its training flags, its hooks and the random states are as before, also after an error.

    layers: a name, a pattern (`*` and `?` match within a part between dots, `**` across them) or a list of these, or a
        function of name and module. `"*"` is every layer with a weight matrix. What is recorded is the output of the
        module itself: name a block for what follows normalisation and activation.
    pool: what is stored of layers. None: all of the output; "flatten": that, as one row; K: maps averaged to K x K and
        tokens to one.
    device: where batches are sent; by default to that of the model's first parameter.
    max_samples: only so many.
    temperature: of the softmax in training, if it is not 1. Logits are stored as the model returns them.
    half: features and layers are stored as float16. Logits are not, because their rounding changes ranks.
    inputs, labels: keys of the dicts that the loader gives. Several inputs are handed to the model by name.
    progress: whether to say on stderr how far it is.

    Raises `Error` with one line if something does not fit, and warns of what a dump lacks.

        >>> kelvin.capture(model, DataLoader(test_set, 256), "test.npz", layers="layer?", pool=2, temperature=10.0)
        test.npz: 10000 samples
          weight 10x512
          ...
    """
    target = _checked_target(path)
    _check_options(pool, max_samples, temperature)
    import numpy

    from kelvin._showing import show

    with DumpWriter(target) as writer:
        shown = show(
            model, loader, writer, layers=layers, pool=pool, device=device, max_samples=max_samples, half=half,
            keys=(inputs, labels), progress=Progress("capture", progress))
        if temperature is not None:
            writer.put("temperature", numpy.array(float(temperature)))
        notes = tuple(shown.notes + [_size_note(name) for name in writer.too_large()])
        shapes = writer.shapes()
        writer.finish()
    for note in notes:
        warnings.warn(f"kelvin.capture: {note}", stacklevel=2)
    return Captured(target, shown.samples, shapes, notes)


def _checked_target(path: str | os.PathLike[str]) -> pathlib.Path:
    target = pathlib.Path(path)
    if target.suffix != ".npz":
        raise Error(f"capture: {target}: the name must end in .npz")
    if not target.parent.is_dir():
        raise Error(f"capture: {target}: there is no folder {target.parent}")
    if target.is_dir():
        raise Error(f"capture: {target}: is a folder")
    return target


def _check_options(pool: object, max_samples: object, temperature: object) -> None:
    is_size = isinstance(pool, numbers.Integral) and not isinstance(pool, bool) and pool >= 1
    if pool is not None and pool != "flatten" and not is_size:
        raise Error(f"capture: pool: must be None, 'flatten' or a size of at least 1, got {pool!r}")
    if max_samples is not None and (not isinstance(max_samples, numbers.Integral) or max_samples < 1):
        raise Error(f"capture: max_samples: must be a whole number of at least 1, got {max_samples!r}")
    is_positive = isinstance(temperature, numbers.Real) and math.isfinite(temperature) and temperature > 0
    if temperature is not None and not is_positive:
        raise Error(f"capture: temperature: must be a number above 0, got {temperature!r}")


def _size_note(name: str) -> str:
    return (f"'{name}' has 4 GiB or more, which NumPy reads but the tool does not: record fewer samples (max_samples), "
            "or averages (pool=2)")
