"""Shows a model the batches of a loader, and stores what it does."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from typing import Any, Iterable, Sequence

import numpy
import torch
from torch import nn

from kelvin._batches import Batch, batch_of, logits_of
from kelvin._dump_writer import DumpWriter
from kelvin._errors import Error
from kelvin._layers import Layers, chosen_layers
from kelvin._progress import Progress
from kelvin._recording import ClassifierRecorder, LayerRecorder, Recorder
from kelvin._undisturbed import undisturbed, unfused, unwrapped

Keys = tuple["str | Sequence[str] | None", "str | None"]


@dataclasses.dataclass
class Shown:
    """How it went."""

    samples: int
    notes: list[str]


def show(
    model: nn.Module,
    loader: Iterable[Any],
    writer: DumpWriter,
    *,
    layers: Layers,
    pool: str | int | None,
    device: str | torch.device | None,
    max_samples: int | None,
    half: bool,
    keys: Keys,
    progress: Progress,
) -> Shown:
    """As `capture` describes it; what is to be stored is left in `writer`."""
    _check_model(model)
    inside = unwrapped(model)
    place = _device_for(inside, device)
    with contextlib.ExitStack() as stack:
        stack.enter_context(undisturbed(inside, loader))
        stack.callback(progress.clear)
        chosen = chosen_layers(inside, layers)
        stack.enter_context(unfused(inside, itertools.chain(*chosen.values())))
        recorder = Recorder(writer, half)
        layer_recorder = LayerRecorder(inside, chosen, recorder, pool)
        stack.callback(layer_recorder.remove_hooks)
        classifier = ClassifierRecorder(inside, recorder)
        stack.callback(classifier.remove_hooks)
        labels = _Labels(recorder)
        for number, given in enumerate(loader):
            batch = batch_of(given, *keys)
            if batch.samples == 0:
                continue
            left = batch.samples if max_samples is None else max_samples - recorder.done
            recorder.begin(batch.samples, min(batch.samples, left))
            logits = _logits(batch, inside, place)
            # Features first: a NaN is reported where it comes from.
            classifier.end_batch(logits, is_required=layers is None)
            recorder.store("logits", logits, "'logits' (the model's output)", as_half=False)
            labels.store(batch, logits.size(1))
            layer_recorder.end_batch()
            recorder.end()
            progress.show(f"{recorder.done} samples", _fraction(recorder.done, number + 1, loader, max_samples))
            if recorder.done == max_samples:
                break
        if recorder.done == 0:
            raise Error("capture: the loader gives no samples")
        layer_recorder.finish()
        labels.finish()
        return Shown(recorder.done, recorder.notes)


class _Labels:
    """Labels of all batches, or of none."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._are_there: bool | None = None
        self._classes = 0
        self._others: int | None = None  # a label that is none of the classes

    def store(self, batch: Batch, classes: int) -> None:
        self._classes = classes
        if self._are_there is None:
            self._are_there = batch.labels is not None
        if self._are_there != (batch.labels is not None):
            raise Error("capture: the loader must give labels with all batches or with none")
        if batch.labels is None:
            return
        kept = numpy.ascontiguousarray(batch.labels[: self._recorder.kept])
        others = kept[(kept < 0) | (kept >= classes)]
        if others.size > 0:
            self._others = int(others[0])
        self._recorder.writer.append("labels", kept, "'labels'")

    def finish(self) -> None:
        if not self._are_there:
            self._recorder.notes.append(
                "the loader gives no labels: the file can be id_test= or ood= of kelvin.ood; kelvin.measure, "
                "kelvin.calibrate and id_train= need labels")
        elif self._others is not None:
            self._recorder.notes.append(
                f"label {self._others} is none of the {self._classes} classes of the logits: the file can be id_test= "
                "or ood= of kelvin.ood, and cannot be measured otherwise")


def _check_model(model: object) -> None:
    if isinstance(model, torch.jit.ScriptModule):
        raise Error("capture: the model is TorchScript, whose layers cannot be looked at; give the nn.Module it is from")
    if not isinstance(model, nn.Module):
        raise Error(f"capture: the model must be a torch.nn.Module, got a {type(model).__name__}")


def _device_for(model: nn.Module, device: str | torch.device | None) -> torch.device:
    first = next(model.parameters(), None)
    home = first.device if first is not None else torch.device("cpu")
    if device is None:
        return home
    try:
        asked = torch.device(device)
    except (RuntimeError, TypeError):
        raise Error(f"capture: device: PyTorch knows no device {device!r}") from None
    is_home = asked.type == home.type and asked.index in (None, home.index)
    if first is not None and not is_home:
        raise Error(f"capture: device: is '{asked}', but the model is on '{home}'; move it with model.to('{asked}')")
    return home if first is not None else asked


def _logits(batch: Batch, model: nn.Module, device: torch.device) -> torch.Tensor:
    logits = logits_of(batch.outputs_of(model, device))
    if logits.size(0) != batch.samples:
        what = "inputs" if batch.labels is None else "labels"
        raise Error(f"capture: sample counts differ: {logits.size(0)} logits for {batch.samples} {what}")
    return logits


def _fraction(samples: int, batches: int, loader: Any, max_samples: int | None) -> float | None:
    by_samples = 0.0 if max_samples is None else samples / max_samples
    try:
        return max(by_samples, batches / max(len(loader), 1))
    except TypeError:  # a generator
        return None if max_samples is None else by_samples
