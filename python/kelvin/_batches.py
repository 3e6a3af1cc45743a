"""What a loader gives: inputs of the network, and labels if it has them."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy
import torch
from torch import nn

from kelvin._errors import Error


class Batch:
    """Inputs as the network takes them, and labels, int64, or None."""

    def __init__(self, inputs: Any, labels: numpy.ndarray[Any, Any] | None) -> None:
        self.inputs = inputs
        self.labels = labels

    @property
    def samples(self) -> int:
        """Of the labels, because the inputs may have another first axis."""
        return _rows_of(self.inputs) if self.labels is None else len(self.labels)

    def outputs_of(self, model: nn.Module, device: torch.device) -> Any:
        inputs = _moved(self.inputs, device)
        if isinstance(inputs, Mapping):
            return model(**inputs)
        if isinstance(inputs, (tuple, list)):
            return model(*inputs)
        return model(inputs)


def batch_of(given: Any, input_keys: str | Sequence[str] | None, label_key: str | None) -> Batch:
    """Takes apart (inputs, labels), (inputs,), inputs alone, or a dict whose keys are given."""
    if isinstance(given, Mapping):
        return _batch_of_dict(given, input_keys, label_key)
    if input_keys is not None or label_key is not None:
        raise Error(f"capture: inputs= and labels= name entries of dicts, but the loader gives {_kind_of(given)}")
    if isinstance(given, torch.Tensor):
        return Batch(given, None)
    if isinstance(given, (tuple, list)) and len(given) == 1:
        return Batch(given[0], None)
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return Batch(given[0], _labels_of(given[1]))
    raise Error(
        "capture: the loader must give (inputs, labels), inputs alone, or dicts, got "
        f"{_kind_of(given)}; a generator can be a loader too: ((x, y) for x, y, *_ in loader)")


def logits_of(output: Any) -> torch.Tensor:
    """[samples, classes], also of a model that returns them under the name `logits`."""
    logits = output
    if isinstance(output, Mapping):
        logits = output.get("logits")
    elif not isinstance(output, torch.Tensor):
        logits = getattr(output, "logits", None)
    if not isinstance(logits, torch.Tensor):
        raise Error(
            "capture: the model must return logits, as a tensor or under the name 'logits', got "
            f"{_kind_of(output)}; wrap it in a module that returns them")
    if logits.dim() != 2 or logits.size(1) < 2 or not logits.is_floating_point():
        raise Error(
            "capture: logits must be floating, [samples, classes] of at least two classes, got "
            f"{list(logits.shape)} of {_dtype_text(logits)}")
    return logits


def _batch_of_dict(given: Mapping[str, Any], input_keys: str | Sequence[str] | None, label_key: str | None) -> Batch:
    keys = ", ".join(f"'{key}'" for key in given)
    if input_keys is None:
        raise Error(
            f"capture: the loader gives dicts with {keys}: say with inputs='...' (one, or a list that the model takes by "
            "name) and labels='...' which are which")
    names = [input_keys] if isinstance(input_keys, str) else list(input_keys)
    for name in names + ([] if label_key is None else [label_key]):
        if name not in given:
            raise Error(f"capture: the loader gives dicts without '{name}'; there are {keys}")
    inputs = given[input_keys] if isinstance(input_keys, str) else {name: given[name] for name in names}
    return Batch(inputs, None if label_key is None else _labels_of(given[label_key]))


def _labels_of(given: Any) -> numpy.ndarray[Any, Any]:
    try:
        labels = torch.as_tensor(given).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise Error(f"capture: labels must be whole numbers, one per sample, got {_kind_of(given)}") from None
    if labels.dim() == 2 and labels.size(1) == 1:
        labels = labels[:, 0]
    if labels.dim() != 1 or labels.is_complex():
        raise Error(f"capture: labels must be whole numbers, one per sample, got {list(labels.shape)}")
    numbers = labels.to(torch.int64)
    if labels.is_floating_point() and not torch.equal(numbers.to(torch.float64), labels.to(torch.float64)):
        raise Error(f"capture: labels must be whole numbers, got {_dtype_text(labels)} that are not")
    return numbers.numpy()


def _rows_of(inputs: Any) -> int:
    tensors = [inputs]
    if isinstance(inputs, Mapping):
        tensors = list(inputs.values())
    elif isinstance(inputs, (tuple, list)):
        tensors = list(inputs)
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.dim() > 0:
            return tensor.size(0)
    raise Error(f"capture: without labels the inputs must have a tensor [samples, ...], got {_kind_of(inputs)}")


def _moved(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, torch.Tensor):
        return inputs.to(device)
    if isinstance(inputs, Mapping):
        return {name: _moved(value, device) for name, value in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        return [_moved(value, device) for value in inputs]
    return inputs


def _kind_of(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _dtype_text(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).replace("torch.", "")
