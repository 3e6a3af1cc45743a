"""Maps to the simplex, losses and measures as operators of PyTorch, with kernels on the CPU and with gradients.

    import kelvin

    weights = kelvin.ops.adaptive_softmax(logits, mask=mask)

Importing this module imports PyTorch and loads `libkelvin_ops.so`, which adds the same operators to `torch.ops.kelvin`;
`import kelvin` alone does neither. They can be traced and compiled; TorchScript takes them by their names there. What
the maps have in common:

x: logits, of any floating type and sizes; half precision is computed in single.
temperature: above 0; the logits are divided by it.
dim: along which they are mapped.
mask: booleans of the sizes of x, or that expand to them: True where a logit takes part, as for
    `scaled_dot_product_attention`. What is masked gets 0 and does not count in n; so does a logit of -inf. A row of
    which all is masked is all zeros.
"""

from __future__ import annotations

import os
import pathlib
from typing import List, Optional

import torch
from torch import Tensor

from kelvin import __version__
from kelvin._errors import Error
from kelvin._tool import find_tool

_NAME = "libkelvin_ops.so"
_NAMES = (f"{_NAME}.{'.'.join(__version__.split('.')[:2])}", _NAME)  # that of this interface first


def find_library() -> str:
    """The path of the operators: what KELVIN_OPS names, or `libkelvin_ops.so` of the tool that `find_tool` finds.

        >>> kelvin.ops.find_library()
        '/usr/lib/x86_64-linux-gnu/libkelvin_ops.so.0.1'
    """
    given = os.environ.get("KELVIN_OPS")
    if given:
        if not os.path.isfile(given):
            raise Error(f"KELVIN_OPS: no file '{given}'; it must be the path of {_NAME}")
        return given
    beside = pathlib.Path(find_tool()).resolve().parent
    for folder in (beside, *sorted(beside.parent.glob("lib*")), *sorted(beside.parent.glob("lib/*-linux-gnu*"))):
        for name in _NAMES:
            if (folder / name).is_file():
                return str(folder / name)
    raise Error(f"{_NAME} was not found beside the tool in '{beside}': build and install kelvin, or set KELVIN_OPS to "
                "its path")


def _load() -> None:
    path = find_library()
    try:
        torch.ops.load_library(path)
    except OSError as error:
        raise Error(f"{path}: cannot be loaded into PyTorch {torch.__version__}; it must be built with that one "
                    f"(-DTorch_DIR): {error}") from None


_load()


def softmax(x: Tensor, temperature: float = 1.0, *, dim: int = -1, mask: Optional[Tensor] = None) -> Tensor:
    """exp(x / temperature) over its sum along `dim`.

        >>> kelvin.ops.softmax(torch.tensor([0.0, 2.0]), temperature=2.0)
        tensor([0.2689, 0.7311])
    """
    return torch.ops.kelvin.softmax(x, temperature, dim=dim, mask=mask)


def adaptive_softmax(x: Tensor, temperature: float = 1.0, *,
                     coefficients: List[float] = [-0.037, 0.481, -2.3, 4.917, -1.791], detach_beta: bool = False,
                     floor: float = 1.0, past_the_peak: str = "fall", threshold: float = 0.5, dim: int = -1,
                     mask: Optional[Tensor] = None) -> Tensor:
    """softmax(beta x / temperature), with a beta for each row that is a polynomial in the entropy of its softmax, in
    nats, and at least 1: rows get sharper ("softmax is not enough", arXiv 2410.01104).

    coefficients: of the polynomial, of the highest power first.
    detach_beta: whether gradients take beta for a constant.
    floor: the least beta.
    past_the_peak: beyond the entropy at which beta is largest it follows the polynomial ("fall", as published: from
        5.94 nats on it is 1), stays ("hold") or grows with the entropy ("grow").
    threshold: up to this entropy beta is 1.

        >>> kelvin.ops.adaptive_softmax(torch.tensor([0.0, 0.5, 1.0, 2.0]))
        tensor([0.0402, 0.0824, 0.1688, 0.7085])
    """
    return torch.ops.kelvin.adaptive_softmax(x, temperature, coefficients=coefficients, detach_beta=detach_beta,
                                             floor=floor, past_the_peak=past_the_peak, threshold=threshold, dim=dim,
                                             mask=mask)


def log_n(x: Tensor, temperature: float = 1.0, *, train_length: int = 512, dim: int = -1,
          mask: Optional[Tensor] = None) -> Tensor:
    """softmax(x ln n / ln train_length) over n logits (Su, 2021).

        >>> kelvin.ops.log_n(torch.tensor([0.0, 0.0, 0.0, 1.0]), train_length=2)[3]
        tensor(0.7112)
    """
    return torch.ops.kelvin.log_n(x, temperature, train_length=train_length, dim=dim, mask=mask)


def ssmax(x: Tensor, temperature: float = 1.0, *, s: float = 0.43, dim: int = -1,
          mask: Optional[Tensor] = None) -> Tensor:
    """Scalable softmax, n^(s x) over its sum, over n logits (arXiv 2501.19399).

        >>> kelvin.ops.ssmax(torch.tensor([0.0, 1.0]), s=1.0)
        tensor([0.3333, 0.6667])
    """
    return torch.ops.kelvin.ssmax(x, temperature, s=s, dim=dim, mask=mask)


def sparsemax(x: Tensor, temperature: float = 1.0, *, dim: int = -1, mask: Optional[Tensor] = None) -> Tensor:
    """The nearest point of the simplex: most weights are exactly 0 (arXiv 1602.02068).

        >>> kelvin.ops.sparsemax(torch.tensor([0.0, 0.5, -1.0]))
        tensor([0.2500, 0.7500, 0.0000])
    """
    return torch.ops.kelvin.sparsemax(x, temperature, dim=dim, mask=mask)


def entmax15(x: Tensor, temperature: float = 1.0, *, dim: int = -1, mask: Optional[Tensor] = None) -> Tensor:
    """Entmax of alpha 1.5, between softmax and sparsemax, by a sort (arXiv 1905.05702).

        >>> kelvin.ops.entmax15(torch.tensor([0.0, 2.0]))
        tensor([0., 1.])
    """
    return torch.ops.kelvin.entmax15(x, temperature, dim=dim, mask=mask)


def alpha_entmax(x: Tensor, temperature: float = 1.0, *, alpha: float = 1.5, dim: int = -1,
                 mask: Optional[Tensor] = None) -> Tensor:
    """Entmax of any alpha above 1, the limit of which at 1 is softmax; 2 is sparsemax (arXiv 1905.05702). By
    bisection and Newton's method in double precision; first derivatives only.

        >>> kelvin.ops.alpha_entmax(torch.tensor([0.0, 0.5, -1.0]), alpha=2.0)
        tensor([0.2500, 0.7500, 0.0000])
    """
    return torch.ops.kelvin.alpha_entmax(x, temperature, alpha=alpha, dim=dim, mask=mask)


def asentmax(x: Tensor, temperature: float = 1.0, *, alpha: float = 1.5, beta: float = 1.0, delta: float = 1.0,
             gamma: float = 1.0, dim: int = -1, mask: Optional[Tensor] = None) -> Tensor:
    """alpha-entmax of (delta + beta (ln n)^gamma) x, over n logits (arXiv 2506.16640).

        >>> kelvin.ops.asentmax(torch.tensor([0.0, 0.1]), alpha=2.0, beta=0.0)
        tensor([0.4500, 0.5500])
    """
    return torch.ops.kelvin.asentmax(x, temperature, alpha=alpha, beta=beta, delta=delta, gamma=gamma, dim=dim, mask=mask)


def sigmoid(x: Tensor, temperature: float = 1.0, *, bias: float = 0.0, length_bias: bool = True, dim: int = -1,
            mask: Optional[Tensor] = None) -> Tensor:
    """sigmoid(x + bias - ln n) of each by itself, over n logits: rows do not sum to 1 (arXiv 2409.04431).

    length_bias: whether ln n is subtracted.

        >>> kelvin.ops.sigmoid(torch.zeros(3))
        tensor([0.2500, 0.2500, 0.2500])
    """
    return torch.ops.kelvin.sigmoid(x, temperature, bias=bias, length_bias=length_bias, dim=dim, mask=mask)


def softmax_off_by_one(x: Tensor, temperature: float = 1.0, *, sink: float = 0.0, dim: int = -1,
                       mask: Optional[Tensor] = None) -> Tensor:
    """exp(x) / (exp(sink) + their sum): rows sum to less than 1.

        >>> kelvin.ops.softmax_off_by_one(torch.zeros(3))
        tensor([0.2500, 0.2500, 0.2500])
    """
    return torch.ops.kelvin.softmax_off_by_one(x, temperature, sink=sink, dim=dim, mask=mask)


def top_k(x: Tensor, temperature: float = 1.0, *, k: int = 8, dim: int = -1, mask: Optional[Tensor] = None) -> Tensor:
    """softmax over the k largest logits, 0 for the others; of equal ones the first are taken.

        >>> kelvin.ops.top_k(torch.tensor([0.0, 3.0, 3.0, 3.0]), k=2)
        tensor([0.0000, 0.5000, 0.5000, 0.0000])
    """
    return torch.ops.kelvin.top_k(x, temperature, k=k, dim=dim, mask=mask)


def stick_breaking(x: Tensor, temperature: float = 1.0, *, dim: int = -1, mask: Optional[Tensor] = None) -> Tensor:
    """From the last logit on, each takes sigmoid(x) of what those behind it left: the order matters, rows sum to at
    most 1 (arXiv 2410.17980).

        >>> kelvin.ops.stick_breaking(torch.zeros(3))
        tensor([0.1250, 0.2500, 0.5000])
    """
    return torch.ops.kelvin.stick_breaking(x, temperature, dim=dim, mask=mask)


def adaptive_attention(query: Tensor, key: Tensor, value: Tensor, temperature: float = 1.0, *,
                       mask: Optional[Tensor] = None, is_causal: bool = False, scale: Optional[float] = None,
                       coefficients: List[float] = [-0.037, 0.481, -2.3, 4.917, -1.791], detach_beta: bool = False,
                       floor: float = 1.0, past_the_peak: str = "fall", threshold: float = 0.5) -> Tensor:
    """adaptive_softmax(scale query key^T) value of [samples, heads, tokens, width] each, as
    `scaled_dot_product_attention` takes them. On the CPU in float32 and bfloat16 the matrix of weights is never in memory.

    mask: booleans that expand to [samples, heads, queries, keys]: True where a query sees a key.
    is_causal: whether a query sees no key behind the one of its own place.
    scale: by default one over the root of the width.
    coefficients and the others: as of `adaptive_softmax`.

        >>> query, key = torch.ones(1, 1, 1, 1), torch.tensor([0.0, 0.5, 1.0, 2.0]).view(1, 1, 4, 1)
        >>> kelvin.ops.adaptive_attention(query, key, torch.eye(4).view(1, 1, 4, 4)).flatten()
        tensor([0.0402, 0.0824, 0.1688, 0.7085])
    """
    return torch.ops.kelvin.adaptive_attention(query, key, value, temperature, mask=mask, is_causal=is_causal, scale=scale,
                                               coefficients=coefficients, detach_beta=detach_beta, floor=floor,
                                               past_the_peak=past_the_peak, threshold=threshold)


def temperature_cross_entropy(logits: Tensor, labels: Tensor, temperature: float | Tensor = 1.0, *,
                              smoothing: float = 0.0) -> Tensor:
    """The mean cross-entropy of softmax(logits / temperature), logits [samples, classes], labels [samples].

    temperature: above 0; a tensor of one number gets a gradient, too.
    smoothing: this fraction of each target is spread evenly over all classes.

        >>> kelvin.ops.temperature_cross_entropy(torch.zeros(2, 4), torch.tensor([0, 3]), 100.0)
        tensor(1.3863)
    """
    return torch.ops.kelvin.temperature_cross_entropy(logits, labels, temperature, smoothing=smoothing)


def numerical_rank(matrices: Tensor, gamma: float = 1e-3) -> Tensor:
    """How many singular values of each matrix [..., rows, columns] exceed gamma times its largest: int64 [...]. The
    matrix is taken as it is, neither centred nor scaled, in double precision; there is no gradient.

        >>> kelvin.ops.numerical_rank(torch.ones(3, 5))
        tensor(1)
    """
    return torch.ops.kelvin.numerical_rank(matrices, gamma)


def neco(features: Tensor, train_features: Tensor, dimensions: int, *, scaler: bool = True,
         raw_denominator: bool = False) -> Tensor:
    """How much of each feature [samples, dims] lies in the leading principal directions of the training features, as
    float64 [samples]: high for samples that are like those (NECO, arXiv 2310.06823). Differentiable in `features`.

    dimensions: how many directions; as many as there are classes is usual.
    scaler: standardises by the training features first.
    raw_denominator: divides by the length of the feature as it is.

        >>> train = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])
        >>> kelvin.ops.neco(torch.tensor([[3.0, 3.0], [2.0, -2.0]]), train, 1)
        tensor([1., 0.], dtype=torch.float64)
    """
    return torch.ops.kelvin.neco(features, train_features, dimensions, scaler=scaler, raw_denominator=raw_denominator)
