#!/usr/bin/python3
"""Linear probes on all layers of the published ResNet-20, CIFAR-10: kelvin's protocol `reproduce` beside the
published protocol in PyTorch (flattened features cached, 30 epochs of Adam at 1e-3, batches of 512, all
cores; its BLAS with all threads or one, whichever is faster: OpenBLAS and OpenMP wait for each other).
Epochs of PyTorch count by their median. Fails if kelvin is less than 10 times faster on the same features,
takes 4 GiB, or is less accurate in a layer than the test images explain: 95 % of the differences of
accuracies over resampled images, the same for both, are below 0. These comparisons need all images and
epochs and are left out otherwise.

  /usr/bin/python3 benchmarks/probe_speed.py --tool build/kelvin_probe_speed --data DATA

With --one-of-each-width PyTorch gets the last layer of each width only; its seconds for all layers are those, times the
layers of that width. With --epochs below 30, seconds are scaled to 30 and accuracies are not compared.
"""
import argparse
import collections
import ctypes
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import torch

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--tool", required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--images", type=int, default=50_000)
parser.add_argument("--test-images", type=int, default=10_000)
parser.add_argument("--epochs", type=int, default=30)
parser.add_argument("--one-of-each-width", action="store_true", help="minutes instead of half an hour")
parser.add_argument("--settings", nargs="*", default=[], help="of measure.linear_probe, such as passes=2")
arguments = parser.parse_args()
EPOCHS = 30
torch.set_num_threads(len(os.sched_getaffinity(0)))
Layer = collections.namedtuple("Layer", "name width accuracy low high l2 hits")


def tool(*words):
    return subprocess.run([arguments.tool, *map(str, words)], check=True, capture_output=True, text=True).stdout


def ours():
    figures, layers = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for line in tool("probe", arguments.data, arguments.images, arguments.test_images, folder,
                         *arguments.settings).splitlines():
            key, *values = line.split()
            if key == "layer":
                hits = np.fromfile(f"{folder}/{values[0]}.hits", np.uint8).astype(bool)
                layers.append(Layer(values[0], int(values[1]), *map(float, values[2:]), hits))
            else:
                figures[key] = values[0]
    return figures, layers


def interval_of_difference(ours, theirs, resamples=2000):
    """95 % of the differences of two accuracies over resampled test images, the same for both."""
    difference = ours.astype(np.float64) - theirs
    chosen = np.random.default_rng(0).integers(len(difference), size=(resamples, len(difference)), dtype=np.int32)
    return np.quantile(difference[chosen].mean(1), (0.025, 0.975))


def cached(layer, split, folder):
    features = np.fromfile(folder / f"{split}_features.f32", np.float32).reshape(-1, layer.width)
    return torch.from_numpy(features), torch.from_numpy(np.fromfile(folder / f"{split}_labels.i64", np.int64))


def train(probe, adam, features, labels, batches):
    for batch in batches:
        loss = torch.nn.functional.cross_entropy(probe(features[batch]), labels[batch])
        adam.zero_grad()
        loss.backward()
        adam.step()


def choose_blas_threads(features, labels):
    """The faster number, tried on a few batches of these features."""
    libraries = [line.split()[-1] for line in open("/proc/self/maps") if "libopenblas" in line]
    if not libraries:
        return
    blas = ctypes.CDLL(libraries[0])
    seconds = {}
    for threads in (torch.get_num_threads(), 1) * 2:
        blas.openblas_set_num_threads(threads)
        probe = torch.nn.Linear(features.shape[1], 10)
        adam = torch.optim.Adam(probe.parameters(), lr=1e-3)
        start = time.perf_counter()
        train(probe, adam, features, labels, torch.randperm(len(labels)).split(512)[:10])
        seconds[threads] = min(seconds.get(threads, float("inf")), time.perf_counter() - start)
    blas.openblas_set_num_threads(min(seconds, key=seconds.get))


def published(layer):
    """Seconds of an epoch, and which test samples it is right about after all of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tool("features", arguments.data, arguments.images, arguments.test_images, layer.name, folder)
        features, labels = cached(layer, "train", folder)
        test, test_labels = cached(layer, "test", folder)
    choose_blas_threads(features, labels)
    torch.manual_seed(0)
    probe = torch.nn.Linear(layer.width, 10)
    adam = torch.optim.Adam(probe.parameters(), lr=1e-3)
    seconds = []
    for _ in range(arguments.epochs):
        start = time.perf_counter()
        train(probe, adam, features, labels, torch.randperm(len(labels)).split(512))
        seconds.append(time.perf_counter() - start)
    with torch.no_grad():
        return statistics.median(seconds), (probe(test).argmax(1) == test_labels).numpy()


figures, layers = ours()
probing, forward, passes = float(figures["probing"]), float(figures["forward"]), int(figures["passes"])
print(f"kelvin, {arguments.images} images, {passes} passes: probes {probing:.1f} s, forward {forward:.1f} s; "
      f"peak {int(figures['peak']) / 2**30:.2f} GiB, {int(figures['counted']) / 2**30:.2f} GiB counted", flush=True)
for layer in layers:
    print(f"  {layer.name}: {layer.width} features, accuracy {100 * layer.accuracy:.2f} % "
          f"({100 * layer.low:.2f} to {100 * layer.high:.2f}), l2 {layer.l2:g}", flush=True)

# The last of its width has most to tell.
shown = list({layer.width: layer for layer in layers}.values()) if arguments.one_of_each_width else layers
same_width = collections.Counter(layer.width for layer in layers)
share = collections.Counter(layer.width for layer in shown)
theirs = 0
lower, is_worse = [], []
for layer in shown:
    seconds, hits = published(layer)
    accuracy = hits.mean()
    low, high = interval_of_difference(layer.hits, hits)
    theirs += same_width[layer.width] / share[layer.width] * EPOCHS * seconds
    print(f"PyTorch, {layer.name}: {seconds:.2f} s an epoch, accuracy {100 * accuracy:.2f} % after "
          f"{arguments.epochs} epochs; kelvin {100 * layer.accuracy:.2f} %, difference "
          f"{100 * (layer.accuracy - accuracy):+.2f} ({100 * low:+.2f} to {100 * high:+.2f})", flush=True)
    if layer.accuracy < accuracy:
        lower.append(f"{layer.name} ({100 * (accuracy - layer.accuracy):.2f} points)")
    if high < 0:
        is_worse.append(layer.name)
print(f"kelvin is at least as accurate in {len(shown) - len(lower)} of {len(shown)} layers; lower in: "
      f"{', '.join(lower) or 'none'}")

once = forward / (passes + arguments.test_images / arguments.images)
print(f"same features: PyTorch {theirs:.0f} s, {theirs / probing:.1f} times as long as kelvin")
print(f"with forward passes: PyTorch and one of kelvin's {theirs + once:.0f} s, "
      f"{(theirs + once) / (probing + forward):.1f} times as long as kelvin with all of its own")
if arguments.images >= 50_000:
    assert theirs >= 10 * probing and int(figures["peak"]) < 4 * 2**30
    assert arguments.epochs < EPOCHS or not is_worse, is_worse
