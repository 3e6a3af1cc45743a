#!/usr/bin/python3
"""Spectra, ranks and class statistics of all layers of a ResNet-18 on 10 000 images of CIFAR-10: beside
the forward pass over the same images, in turns of 1000 images, and beside the usual way, features to NumPy
and an SVD per layer. Fails if the top 50 singular values differ by more than 1 %, if measuring takes longer than the
forward pass, or if NumPy is less than 20 times slower.

  /usr/bin/python3 benchmarks/measure_speed.py --tool build/kelvin_measure_speed --data DATA

NumPy gets 2000 images of the two narrowest kinds of layers, 16384 and 8192 features; its seconds for all
images are those times (images / 2000)^2, as the shorter side enters squared, and for the nine wider layers
those of 16384 features. Both favour it: 10 000 images of 16384 features really took it 478 s, not 200.
"""
import argparse
import subprocess
import tempfile
import time

import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tool", required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--samples", type=int, default=10_000)
arguments = parser.parse_args()
FEW = 2000


def figures(samples, dump):
    output = subprocess.run([arguments.tool, arguments.data, str(samples), dump], check=True,
                            capture_output=True, text=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in output.splitlines()}


seconds = {}
with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    few = figures(FEW, file.name)
    dump = dict(np.load(file.name))
for name in ("layer3.0.conv1", "layer4.0.conv1"):
    start = time.perf_counter()
    rows = dump[name] - dump[name].mean(0)
    values = np.linalg.svd(rows, compute_uv=False)
    seconds[name] = time.perf_counter() - start
    off = np.abs(dump["values/" + name][:50] / values[:50] - 1)
    print(f"{name}: {rows.shape[1]} features of {FEW} images, NumPy {seconds[name]:.1f} s; top 50 singular "
          f"values of the sketch off by at most {100 * off.max():.2f} %, median {100 * np.median(off):.2f} %",
          flush=True)
    assert off.max() < 0.01

all_ = figures(arguments.samples, "-")
extra = all_["measured"] + all_["spectra"] - all_["forward"]
usual = (13 * seconds["layer3.0.conv1"] + 4 * seconds["layer4.0.conv1"]) * (arguments.samples / FEW) ** 2
print(f"{arguments.samples} images: forward pass {all_['forward']:.1f} s; measuring adds {extra:.1f} s "
      f"({all_['sample']:.1f} s for the sample that anchors come from, {all_['updates']:.1f} s for the stream, "
      f"{all_['spectra']:.1f} s for spectra): {extra / all_['forward']:.2f} of a forward pass")
print(f"NumPy, at least {usual:.0f} s: {usual / extra:.0f} times as long")
print(f"accumulators {all_['bytes'] / 2**20:.0f} MiB for {arguments.samples} images, "
      f"{few['bytes'] / 2**20:.0f} MiB for {FEW}")
assert extra <= all_["forward"] and usual >= 20 * extra
