#!/usr/bin/python3
"""Batches of CIFAR-10 with pad-4 crop, flip and normalisation, 128 images each, on one thread:
kelvin against uint8 augmentation of whole batches in PyTorch and against torchvision's transforms in
a DataLoader. Results are compared first; then interleaved rounds, medians and ratios.

  /usr/bin/python3 benchmarks/batch_speed.py --tool build/kelvin_batch_speed --data DATA
"""
import argparse
import statistics
import subprocess
import tempfile
import time

import numpy as np
import torch
import torchvision.transforms as transforms
from PIL import Image

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tool", required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--rounds", type=int, default=5)
arguments = parser.parse_args()
program, data, rounds = arguments.tool, arguments.data, arguments.rounds
torch.set_num_threads(1)

BATCH = 128
MEAN = (0.4914, 0.4822, 0.4465)
DEVIATION = (0.2470, 0.2435, 0.2616)

raw = np.concatenate([np.fromfile(f"{data}/cifar-10-batches-bin/data_batch_{i}.bin", np.uint8)
                      for i in range(1, 6)]).reshape(-1, 3073)
labels = torch.from_numpy(raw[:, 0].astype(np.int64))
images = torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32).copy())
padded = torch.nn.functional.pad(images, (4, 4, 4, 4)).permute(0, 2, 3, 1).contiguous()
scale = torch.tensor([1 / (255 * d) for d in DEVIATION])
shift = torch.tensor([-m / d for m, d in zip(MEAN, DEVIATION)])
# All 81 windows of each image as a view: one gather of whole rows takes the wanted ones.
rows, pixels = padded.stride(1), padded.stride(2)
windows = padded.as_strided((len(padded), 9, 9, 32, 32, 3), (padded.stride(0), rows, pixels, rows, pixels, 1))


def torch_batch(indices, left, top, flip):
    """Window, mirror, convert and normalise, all in channels-last."""
    bytes_ = windows[indices, top, left]
    bytes_[flip] = bytes_[flip].flip(2)
    return bytes_.float().mul_(scale).add_(shift).permute(0, 3, 1, 2)


def compare():
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        subprocess.run([program, data, "dump", file.name], check=True)
        dump = np.load(file.name)
        index, left, top, flip = torch.from_numpy(dump["views"]).T
        theirs = torch_batch(index, left + 4, top + 4, flip.bool())
        difference = (torch.from_numpy(dump["batch"]) - theirs).abs().max().item()
    print(f"largest difference between kelvin's batch and PyTorch's: {difference:.1e}")
    assert difference < 1e-5


def kelvin():
    result = subprocess.run([program, data, "speed", "6"], check=True, capture_output=True, text=True)
    return float(result.stdout)


def pytorch():
    start, count = time.perf_counter(), 0
    order = torch.randperm(len(images))
    for begin in range(0, len(images) - BATCH + 1, BATCH):
        indices = order[begin:begin + BATCH]
        left, top = torch.randint(0, 9, (2, BATCH))
        batch = torch_batch(indices, left, top, torch.rand(BATCH) < 0.5)
        count += len(batch) + 0 * len(labels[indices])
    return count / (time.perf_counter() - start)


class Cifar(torch.utils.data.Dataset):
    """As torchvision.datasets.CIFAR10 hands out its images."""
    pixels = np.ascontiguousarray(images.permute(0, 2, 3, 1).numpy())
    transform = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(),
                                    transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])

    def __len__(self):
        return 6400

    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.pixels[index])), int(labels[index])


def torchvision():
    loader = torch.utils.data.DataLoader(Cifar(), batch_size=BATCH, shuffle=True)
    start = time.perf_counter()
    count = sum(len(batch) for batch, _ in loader)
    return count / (time.perf_counter() - start)


compare()
speeds = {"kelvin": [], "PyTorch, uint8 batches": [], "torchvision, DataLoader": []}
for _ in range(rounds):
    for name, measure in zip(speeds, (kelvin, pytorch, torchvision)):
        speeds[name].append(measure())
ours = statistics.median(speeds["kelvin"])
print(f"\n| {rounds} interleaved rounds, one thread | images/s (least to most) | kelvin is faster by |")
print("| --- | ---: | ---: |")
for name, values in speeds.items():
    median = statistics.median(values)
    print(f"| {name} | {median:,.0f} ({min(values):,.0f} to {max(values):,.0f}) | {ours / median:.1f} |")
