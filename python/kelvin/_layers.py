"""Which layers a pattern names."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Callable, Sequence, Union

from kelvin._errors import Error

if TYPE_CHECKING:
    from torch import nn

Layers = Union[str, Sequence[str], Callable[[str, "nn.Module"], bool], None]

ALL_WEIGHT_LAYERS = "*"


def chosen_layers(model: nn.Module, layers: Layers) -> dict[str, list[str]]:
    """The names of layers by the pattern that chose them; an Error if one chose none.

    `*` alone stands for all layers with a weight matrix. In other patterns `*` and `?` do not match a dot and `**` does.
    A callable is asked about every name and module.
    """
    if layers is None:
        return {}
    # A module that has two names may be asked for by either.
    named = {name: module for name, module in model.named_modules(remove_duplicate=False) if name}
    if callable(layers):
        chosen = [name for name, module in named.items() if layers(name, module)]
        if not chosen:
            raise Error(f"capture: layers: the function chose none of the {len(named)} modules")
        return {"": chosen}
    patterns = [layers] if isinstance(layers, str) else list(layers)
    if not patterns:
        raise Error("capture: layers: must name at least one layer, or be None")
    return {pattern: _matching(pattern, named) for pattern in patterns}


def _matching(pattern: object, named: dict[str, nn.Module]) -> list[str]:
    if not isinstance(pattern, str):
        raise Error(f"capture: layers: must be names or patterns, a list of them or a function, got {pattern!r}")
    if pattern == ALL_WEIGHT_LAYERS:
        found = [name for name, module in named.items() if _is_weight_layer(name, module, named)]
        if not found:
            raise Error("capture: layers='*': no module has a weight matrix")
        return found
    expression = re.compile(_expression_of(pattern))
    found = [name for name in named if expression.fullmatch(name)]
    if not found:
        raise Error(f"capture: layers: no module named '{pattern}'; {_nearest(pattern, list(named))}")
    return found


def _expression_of(pattern: str) -> str:
    parts = {"**": ".*", "*": "[^.]*", "?": "[^.]"}
    return "".join(parts.get(part) or re.escape(part) for part in re.split(r"(\*\*|\*|\?)", pattern))


def _is_weight_layer(name: str, module: nn.Module, named: dict[str, nn.Module]) -> bool:
    from torch import Tensor, nn

    if isinstance(module, nn.MultiheadAttention):
        return True
    # What an attention layer gives is what its out_proj gives, which it does not call as a module.
    if isinstance(named.get(name.rpartition(".")[0]), nn.MultiheadAttention):
        return False
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
        return False
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() >= 2


def _nearest(pattern: str, names: list[str]) -> str:
    if not names:
        return "the model has no modules inside"
    near = difflib.get_close_matches(pattern, names, n=3, cutoff=0.3)
    if near:
        return "the nearest are " + ", ".join(f"'{name}'" for name in near)
    some = ", ".join(f"'{name}'" for name in names[:5])
    return f"there are {some}" + (f" and {len(names) - 5} more" if len(names) > 5 else "")
