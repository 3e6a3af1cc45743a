"""Forward hooks that hand on what layers read and give."""

from __future__ import annotations

import collections
import math
from typing import Any, Callable

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils.hooks import RemovableHandle

from kelvin._dump_writer import DumpWriter
from kelvin._errors import Error

# What bfloat16 may round away, and sums of it; the tool allows the same.
_ROUNDING = 0.03
_LARGEST_HALF = 65504.0


class Recorder:
    """Stores tensors of the batch that is being shown, in the precision of the dump."""

    def __init__(self, writer: DumpWriter, half: bool) -> None:
        self.writer = writer
        self.half = half
        self.notes: list[str] = []  # what the caller has to know when all went well
        self.done = 0  # samples of earlier batches
        self.samples = 0  # of this batch
        self.kept = 0  # of those, the first are stored

    def begin(self, samples: int, kept: int) -> None:
        self.samples, self.kept = samples, kept

    def end(self) -> None:
        self.done += self.kept

    def store(self, name: str, tensor: torch.Tensor, what: str, as_half: bool) -> None:
        """Appends the kept rows of [samples, ...] to the array `name`."""
        rows = tensor.detach()[: self.kept]
        stored = rows.to("cpu", torch.float64 if rows.dtype == torch.float64 else torch.float32)
        # The extremes are NaN if one number is.
        largest = max(abs(float(extreme)) for extreme in torch.aminmax(stored)) if stored.numel() > 0 else 0.0
        if not math.isfinite(largest):
            self._reject(stored, what)
        if as_half:
            if largest > _LARGEST_HALF:
                raise Error(f"capture: {what} has numbers above {_LARGEST_HALF:.0f}, which half=True cannot store")
            stored = stored.to(torch.float16)
        self.writer.append(name, stored.contiguous().numpy(), what)

    def _reject(self, rows: torch.Tensor, what: str) -> None:
        is_bad = torch.isfinite(rows).logical_not().flatten(1).any(1)
        sample = self.done + int(is_bad.nonzero()[0])
        kind = "NaN" if torch.isnan(rows).any() else "an infinity"
        raise Error(f"capture: {what} has {kind}, first in sample {sample}; layers='*' finds the layer it comes from")


class ClassifierRecorder:
    """Finds the linear layer that gives the logits, and records what it reads as `features`."""

    def __init__(self, model: nn.Module, recorder: Recorder) -> None:
        self._recorder = recorder
        self._linears = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
        self._seen: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}  # in order of the last call
        self._handles = {name: module.register_forward_hook(self._hook(name)) for name, module in self._linears.items()}
        self.name: str | None = None

    def remove_hooks(self) -> None:
        for handle in self._handles.values():
            handle.remove()

    def end_batch(self, logits: torch.Tensor, is_required: bool) -> None:
        if self._recorder.done == 0:
            self._choose(logits, is_required)
        if self.name is None:
            return
        if self.name not in self._seen:
            raise Error(f"capture: '{self.name}' is the classifier of the first batch, and was not called for another")
        features = self._seen[self.name][0]
        self._seen.clear()
        self._recorder.store("features", features, f"'features' (the input of '{self.name}')", self._recorder.half)

    def _hook(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def remember(_: nn.Module, inputs: Any, output: Any) -> None:
            self._seen.pop(name, None)
            is_row_by_row = bool(inputs) and inputs[0].dim() == 2 and inputs[0].size(0) == self._recorder.samples
            if is_row_by_row:
                self._seen[name] = (inputs[0], output)

        return remember

    def _choose(self, logits: torch.Tensor, is_required: bool) -> None:
        candidates = list(reversed(self._seen))
        if not candidates:
            self._report_none(is_required)
            return
        classifiers = [name for name in candidates if self._factor_of(name, logits) == 1]
        self.name = (classifiers or candidates)[0]
        for name, handle in list(self._handles.items()):
            if name != self.name:
                self._handles.pop(name)
                handle.remove()
        if classifiers:
            self._store_weights()
        else:
            self._warn_of_other_logits(logits)

    def _report_none(self, is_required: bool) -> None:
        missing = (
            "no linear layer (nn.Linear) found" if not self._linears else
            "no linear layer (nn.Linear) that is called with [samples, features]")
        if is_required:
            raise Error(f"capture: {missing}, so the classifier's input is not known; name layers with layers=")
        self._recorder.notes.append(f"{missing}: 'features', 'weight' and 'bias' are left out")
        self.remove_hooks()
        self._seen.clear()

    def _factor_of(self, name: str, logits: torch.Tensor) -> float | None:
        """How many times what the layer gives the logits are; None if they are no multiple of it."""
        features, _ = self._seen[name]
        linear = self._linears[name]
        if linear.out_features != logits.size(1):
            return None
        bias = None if linear.bias is None else linear.bias.float()
        expected = functional.linear(features.float(), linear.weight.float(), bias)
        given = logits.float()

        def is_close(numbers: torch.Tensor) -> bool:
            scale = max(float(given.abs().max()), float(numbers.abs().max()))
            return float((given - numbers).abs().max()) <= _ROUNDING * scale

        if is_close(expected):
            return 1
        factor = float((given * expected).sum() / expected.square().sum().clamp_min(1e-30))
        return factor if is_close(factor * expected) else None

    def _store_weights(self) -> None:
        linear = self._linears[self.name or ""]
        for name, parameter in (("weight", linear.weight), ("bias", linear.bias)):
            if parameter is None:
                continue
            array = parameter.detach()
            dtype = torch.float64 if array.dtype == torch.float64 else torch.float32
            self._recorder.writer.put(name, array.to("cpu", dtype).contiguous().numpy())

    def _warn_of_other_logits(self, logits: torch.Tensor) -> None:
        factor = self._factor_of(self.name or "", logits)
        text = f"the model's output is not what '{self.name}', the last linear layer, gives"
        if factor is not None:
            text = (f"the model's output is {factor:.3g} times what '{self.name}' gives: "
                    "return logits before they are divided by a temperature")
        self._recorder.notes.append(f"{text}; 'weight' and 'bias' are left out")


class LayerRecorder:
    """Records outputs of layers as `layer/NAME`; those of a layer that is called several times with their number."""

    def __init__(self, model: nn.Module, chosen: dict[str, list[str]], recorder: Recorder,
                 pool: str | int | None) -> None:
        self._recorder = recorder
        self._pool = pool
        self._chosen = chosen
        modules = dict(model.named_modules(remove_duplicate=False))
        names = list(dict.fromkeys(name for found in chosen.values() for name in found))
        # Of a pattern that names what there is, all must be stored; '*' and a function name what may be stored.
        self._required = {
            name for pattern, found in chosen.items() if pattern not in ("", "*") for name in found}
        self._calls: collections.Counter[str] = collections.Counter()
        self._first_calls: dict[str, int] = {}
        self._left_out: dict[str, str] = {}
        self._handles: list[RemovableHandle] = [
            modules[name].register_forward_hook(self._hook(name)) for name in names]

    def remove_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()

    def end_batch(self) -> None:
        calls, self._calls = dict(self._calls), collections.Counter()
        if self._recorder.done == 0:
            self._first_calls = calls
            self._check_called()
            return
        for name in {**self._first_calls, **calls}:
            if calls.get(name, 0) != self._first_calls.get(name, 0):
                raise Error(f"capture: layer '{name}' is called {self._first_calls.get(name, 0)} times for the first "
                            f"batch and {calls.get(name, 0)} times for another")

    def finish(self) -> None:
        """Says what was left out, and numbers the calls of layers that have several."""
        several = [name for name, calls in self._first_calls.items() if calls > 1]
        for name in several:
            self._recorder.writer.rename(f"layer/{name}", f"layer/{name}#1")
        if several:
            example = several[0]
            self._recorder.notes.append(
                f"called several times per forward pass: {_list_text(several)}; stored one by one, as "
                f"'{example}#1', '{example}#2'" + (", ..." if self._first_calls[example] > 2 else ""))
        if self._left_out:
            reasons = [f"'{name}' ({reason})" for name, reason in self._left_out.items()]
            self._recorder.notes.append("layers left out: " + _list_text(reasons, ""))

    def _hook(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def record(module: nn.Module, _: Any, output: Any) -> None:
            if name in self._left_out:
                return
            # The second of its results are the weights of the attention, or None.
            if isinstance(module, nn.MultiheadAttention) and isinstance(output, tuple):
                output = output[0]
            fault = self._fault_of(output)
            if fault:
                self._leave_out(name, fault)
                return
            self._calls[name] += 1
            key = _key_of(name, self._calls[name])
            # At once: a layer that follows may overwrite it.
            rows = _pooled(output[: self._recorder.kept], self._pool, module)
            self._recorder.store(key, rows, f"the output of layer '{name}'", self._recorder.half)

        return record

    def _leave_out(self, name: str, fault: str) -> None:
        if name in self._required or self._recorder.done > 0:
            raise Error(f"capture: layer '{name}' gives {fault}")
        self._left_out[name] = "gives " + fault
        for call in range(self._calls.pop(name, 0)):
            self._recorder.writer.drop(_key_of(name, call + 1))

    def _fault_of(self, output: Any) -> str:
        samples = self._recorder.samples
        if not isinstance(output, torch.Tensor):
            size = f" of {len(output)}" if isinstance(output, (tuple, list, dict)) else ""
            return f"a {type(output).__name__}{size}, where one tensor is needed; name a layer inside of it or after it"
        if not output.is_floating_point():
            return f"{str(output.dtype).replace('torch.', '')}, where floating numbers are needed"
        if output.dim() < 2 or output.size(0) != samples:
            return f"{list(output.shape)} for {samples} samples, where [{samples}, ...] is needed"
        return ""

    def _check_called(self) -> None:
        for pattern, found in self._chosen.items():
            uncalled = [name for name in found if name not in self._first_calls and name not in self._left_out]
            if len(uncalled) < len(found):
                self._left_out.update((name, "not called in the forward pass") for name in uncalled)
                continue
            names = f"'{found[0]}'" if len(found) == 1 else f"all {len(found)} layers of '{pattern or 'the function'}'"
            raise Error(f"capture: layers: {names} {'is' if len(found) == 1 else 'are'} never called in the forward pass")
        if self._chosen and not self._first_calls:
            name, reason = next(iter(self._left_out.items()))
            raise Error(f"capture: layers: none can be stored; '{name}' {reason}")


def _key_of(name: str, call: int) -> str:
    return f"layer/{name}" if call == 1 else f"layer/{name}#{call}"


def _pooled(output: torch.Tensor, pool: str | int | None, module: nn.Module) -> torch.Tensor:
    """[samples, ...] flattened, or maps averaged to pool x pool and tokens to one."""
    if pool is None or output.dim() == 2:
        return output
    if pool == "flatten":
        return output.flatten(1)
    size = int(pool)
    output = output.float() if output.dtype in (torch.float16, torch.bfloat16) else output
    one_dimensional = (nn.Conv1d, nn.ConvTranspose1d, nn.BatchNorm1d)
    if output.dim() == 3 and not isinstance(module, one_dimensional):
        return output.mean(1)
    if output.dim() > 5:
        raise Error(f"capture: pool={pool}: needs maps or tokens, got {list(output.shape)}; use pool='flatten'")
    pools = {3: functional.adaptive_avg_pool1d, 4: functional.adaptive_avg_pool2d, 5: functional.adaptive_avg_pool3d}
    return pools[output.dim()](output, [min(size, extent) for extent in output.shape[2:]])


def _list_text(names: list[str], quote: str = "'") -> str:
    shown = ", ".join(f"{quote}{name}{quote}" for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
