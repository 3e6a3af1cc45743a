"""A model that is looked at as it predicts, and left as it was."""

from __future__ import annotations

import contextlib
import random
import sys
from typing import Any, Iterable, Iterator

import torch
from torch import nn


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside of DataParallel, DistributedDataParallel and torch.compile, whose hooks are called."""
    wrappers = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    while True:
        if isinstance(model, wrappers):
            model = model.module
        elif isinstance(model._modules.get("_orig_mod"), nn.Module):
            model = model._modules["_orig_mod"]
        else:
            return model


@contextlib.contextmanager
def undisturbed(model: nn.Module, loader: Any) -> Iterator[None]:
    """Evaluation mode, without gradients, nothing compiled. At the end training flags and random states are those of
    the beginning."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_random_states(model, loader))
        # Not inference_mode: what a model keeps for its next forward pass could not be trained with.
        stack.enter_context(torch.no_grad())
        stack.enter_context(_evaluation(model))
        stack.enter_context(_uncompiled(model))
        yield


@contextlib.contextmanager
def _random_states(model: nn.Module, loader: Any) -> Iterator[None]:
    # Only to begin with a DataLoader takes a number from PyTorch's generator.
    first = next(model.parameters(), None)
    devices = [first.device] if first is not None and first.is_cuda else []
    generators = {id(each): each for each in _generators_of(loader)}.values()
    states = [(generator, generator.get_state()) for generator in generators]
    of_python = random.getstate()
    numpy = sys.modules.get("numpy")
    of_numpy = numpy.random.get_state() if numpy is not None else None
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        for generator, state in states:
            generator.set_state(state)
        random.setstate(of_python)
        if numpy is not None:
            numpy.random.set_state(of_numpy)


def _generators_of(loader: Any) -> Iterator[torch.Generator]:
    for owner in (loader, getattr(loader, "sampler", None)):
        generator = getattr(owner, "generator", None)
        if isinstance(generator, torch.Generator):
            yield generator


@contextlib.contextmanager
def _evaluation(model: nn.Module) -> Iterator[None]:
    # Each for itself: a part that is kept in evaluation mode during training stays there.
    flags = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for module, is_training in flags:
            module.training = is_training


@contextlib.contextmanager
def _uncompiled(model: nn.Module) -> Iterator[None]:
    children = []
    calls = []
    for module in list(model.modules()):
        if getattr(module, "_compiled_call_impl", None) is not None:
            calls.append((module, module._compiled_call_impl))
        for name, child in module._modules.items():
            inside = child._modules.get("_orig_mod") if child is not None else None
            if inside is not None:
                children.append((module, name, child, inside))
    try:
        for module, _ in calls:
            module._compiled_call_impl = None
        for parent, name, _, inside in children:
            parent._modules[name] = inside
        yield
    finally:
        for parent, name, child, _ in children:
            parent._modules[name] = child
        for module, call in calls:
            module._compiled_call_impl = call


@contextlib.contextmanager
def unfused(model: nn.Module, layers: Iterable[str]) -> Iterator[None]:
    """Computes PyTorch's transformer encoders step by step if one of `layers` lies inside.

    When they predict they compute in one step, without calling what they consist of. They do not if the activation is
    none that this step knows. Outputs differ only where a padding mask makes tokens meaningless: the one step gives 0.
    """
    kinds = (nn.TransformerEncoder, nn.TransformerEncoderLayer)
    encoders = {name: module for name, module in model.named_modules() if isinstance(module, kinds)}
    is_inside = any(layer.startswith(f"{name}." if name else "") for layer in layers for name in encoders)
    changed: list[tuple[nn.Module, str, Any]] = []
    for module in encoders.values() if is_inside else ():
        for name in ("activation_relu_or_gelu", "use_nested_tensor", "enable_nested_tensor"):  # by version
            if hasattr(module, name):
                changed.append((module, name, getattr(module, name)))
    try:
        for module, name, _ in changed:
            setattr(module, name, 0)
        yield
    finally:
        for module, name, value in changed:
            setattr(module, name, value)
