#!/usr/bin/python3
"""An epoch of ResNet-20 on CIFAR-10 from start to end: `kelvin train` against a PyTorch script at its
best. Both are whole processes: they load their libraries and 50 000 images, train with crops and flips
in batches of 128, and answer all 10 000 test images once: kelvin in float32, as all its measures are, and a
few hundred others for its curves; PyTorch in the precision it trained in. In turns, as ratios of wall clock time; the
accuracies of both stand beside it.

  /usr/bin/python3 benchmarks/epoch_speed.py --tool build/kelvin --data DATA [--precision fp32]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BATCH = 128
RATE = 0.1
DECAY = 5e-4
MEAN = (0.4914, 0.4822, 0.4465)
DEVIATION = (0.2470, 0.2435, 0.2616)


def train_with_pytorch(data, precision):
    """Images stay bytes in memory; whole batches are cut, mirrored and normalised in channels-last."""
    import numpy as np
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)

    def read(names):
        raw = np.concatenate([np.fromfile(f"{data}/cifar-10-batches-bin/{name}.bin", np.uint8)
                              for name in names]).reshape(-1, 3073)
        return torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32)), torch.from_numpy(raw[:, 0].astype(np.int64))

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.stride, self.added = stride, outputs - inputs

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)), inplace=True)
            y = self.bn2(self.conv2(y))
            if self.added:
                x = F.pad(x[:, :, ::self.stride, ::self.stride],
                          (0, 0, 0, 0, self.added // 2, self.added - self.added // 2))
            y += x
            return F.relu(y, inplace=True)

    class ResNet20(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(16)
            shapes = [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2 + [(32, 64, 2)] + [(64, 64, 1)] * 2
            self.blocks = nn.Sequential(*(Block(*shape) for shape in shapes))
            self.fc = nn.Linear(64, 10)

        def forward(self, x):
            x = F.relu(self.bn1(self.conv1(x)), inplace=True)
            return self.fc(self.blocks(x).mean((2, 3)))

    def cast():
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16")

    images, labels = read([f"data_batch_{i}" for i in range(1, 6)])
    test_images, test_labels = read(["test_batch"])
    scale = torch.tensor([1 / (255 * d) for d in DEVIATION])
    shift = torch.tensor([-m / d for m, d in zip(MEAN, DEVIATION)])
    padded = F.pad(images, (4, 4, 4, 4)).permute(0, 2, 3, 1).contiguous()
    # All 81 windows of each image as a view: one gather of whole rows takes the wanted ones.
    row, pixel = padded.stride(1), padded.stride(2)
    windows = padded.as_strided((len(padded), 9, 9, 32, 32, 3), (padded.stride(0), row, pixel, row, pixel, 1))

    def normalised(bytes_):
        return bytes_.float().mul_(scale).add_(shift).permute(0, 3, 1, 2)

    model = ResNet20().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=DECAY,
                                nesterov=True, foreach=True)
    steps = (len(images) + BATCH - 1) // BATCH
    # As kelvin's default for one epoch: the rate rises all along.
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / steps)
    order = torch.randperm(len(images))
    for part in order.split(BATCH):
        top, left = torch.randint(0, 9, (2, len(part)))
        bytes_ = windows[part, top, left]
        flip = torch.rand(len(part)) < 0.5
        bytes_[flip] = bytes_[flip].flip(2)
        optimizer.zero_grad(set_to_none=True)
        with cast():
            logits = model(normalised(bytes_))
        F.cross_entropy(logits.float(), labels[part]).backward()
        optimizer.step()
        schedule.step()
    model.eval()
    right = 0
    with torch.inference_mode(), cast():
        for part in torch.arange(len(test_images)).split(500):
            batch = normalised(test_images[part].permute(0, 2, 3, 1))
            right += (model(batch).argmax(1) == test_labels[part]).sum().item()
    print(json.dumps({"accuracy": right / len(test_images)}))


def run_kelvin(tool, data, precision, folder):
    subprocess.run(
        [tool, "train", "--quiet", "--model", "resnet20", "--dataset", "cifar10", "--data-dir", data,
         "--augment", "crop-flip", "--epochs", "1", "--batch-size", str(BATCH), "--lr", str(RATE),
         "--weight-decay", str(DECAY), "--precision", precision, "--output", folder, "train.nesterov=true",
         "measure.names=accuracy", "measure.epoch_samples=100", "measure.train_samples=100"],
        check=True, stdout=subprocess.DEVNULL)
    for line in pathlib.Path(folder, "readings.jsonl").read_text().splitlines():
        reading = json.loads(line)
        if reading["name"] == "accuracy" and reading.get("split") == "test":
            return reading["value"]
    raise SystemExit("epoch_speed: kelvin's run has no test accuracy")


def run_pytorch(data, precision):
    command = [sys.executable, __file__, "--data", data, "--precision", precision, "--pytorch"]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(answer)["accuracy"]


def timed(work):
    start = time.perf_counter()
    accuracy = work()
    return time.perf_counter() - start, accuracy


def compare(arguments):
    seconds = {"kelvin": [], "PyTorch": []}
    for turn in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as folder:
            sides = {
                "kelvin": lambda: run_kelvin(arguments.tool, arguments.data, arguments.precision, folder + "/run"),
                "PyTorch": lambda: run_pytorch(arguments.data, arguments.precision)}
            for name, work in sides.items():
                took, accuracy = timed(work)
                seconds[name].append(took)
                print(f"round {turn + 1}, {name}: {took:.1f} s, {100 * accuracy:.2f} % right after one epoch", flush=True)
                assert accuracy > 0.3, "an epoch that teaches nothing is not worth timing"
    ratios = [theirs / ours for ours, theirs in zip(seconds["kelvin"], seconds["PyTorch"])]
    print(f"{arguments.precision}: kelvin {statistics.median(seconds['kelvin']):.1f} s, "
          f"PyTorch {statistics.median(seconds['PyTorch']):.1f} s, "
          f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--tool", default="build/kelvin")
parser.add_argument("--data", required=True)
parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--pytorch", action="store_true", help=argparse.SUPPRESS)
options = parser.parse_args()
if options.pytorch:
    train_with_pytorch(options.data, options.precision)
else:
    compare(options)
