#!/usr/bin/python3
"""Photographs per second of kelvin beside Pillow, OpenCV and torchvision, all on one thread.

  /usr/bin/python3 benchmarks/decode_speed.py --tool build/kelvin_decode_speed --images DATA/tiny-imagenet-100

Makes JPEGs of ImageNet's size and weight (and a set of large ones) out of small pictures, compares
what the libraries make of them, then times rounds of all of them in turn.  Seconds are those of
the processor, so that other programs on the machine disturb little.
"""

import argparse
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

import cv2
import numpy as np
import torch
from PIL import Image

SHORT_SIDE = 256
CROP = 224


def photograph(paths, width, height, generator):
    """Two small pictures blended and enlarged, with texture at several scales: as many bytes per
    pixel as a photograph has."""
    layers = [np.asarray(Image.open(path).convert("RGB").resize((width, height), Image.BICUBIC), "f4")
              for path in generator.sample(paths, 2)]
    image = 0.7 * layers[0] + 0.3 * layers[1]
    noise = np.random.RandomState(generator.randrange(2**31))
    for scale, strength in ((1, 22), (2, 22), (4, 12)):
        shape = (height // scale + 1, width // scale + 1)
        texture = Image.fromarray(noise.normal(0, strength, shape).astype("f4"))
        image += np.asarray(texture.resize((width, height), Image.BILINEAR))[..., None]
    return Image.fromarray(np.clip(image, 0, 255).astype("uint8"))


def make_set(folder, paths, count, sizes):
    generator = random.Random(1)
    files = []
    for i in range(count):
        width, height = generator.choice(sizes)
        file = folder / f"{i}.jpg"
        photograph(paths, width, height, generator).save(file, quality=90, subsampling=2)
        files.append(file)
    return files


def centre_box(width, height):
    crop = min(width, height) * CROP / SHORT_SIDE
    left, top = (width - crop) / 2, (height - crop) / 2
    return left, top, left + crop, top + crop


def with_pillow_box(file):
    image = Image.open(file).convert("RGB")
    return np.asarray(image.resize((CROP, CROP), Image.BILINEAR, centre_box(*image.size)))


def size_before_crop(width, height):
    scale = SHORT_SIDE / min(width, height)
    return round(width * scale), round(height * scale)


def with_pillow(file, has_draft=False):
    """As torchvision's Resize and CenterCrop do."""
    image = Image.open(file)
    if has_draft:
        image.draft("RGB", size_before_crop(*image.size))
    image = image.convert("RGB")
    image = image.resize(size_before_crop(*image.size), Image.BILINEAR)
    left, top = (image.width - CROP) // 2, (image.height - CROP) // 2
    return np.asarray(image.crop((left, top, left + CROP, top + CROP)))


def with_opencv(file, interpolation):
    image = cv2.imdecode(np.fromfile(file, "u1"), cv2.IMREAD_COLOR)
    height, width = image.shape[:2]
    image = cv2.resize(image, size_before_crop(width, height), interpolation=interpolation)
    top, left = (image.shape[0] - CROP) // 2, (image.shape[1] - CROP) // 2
    return cv2.cvtColor(image[top:top + CROP, left:left + CROP], cv2.COLOR_BGR2RGB)


def torchvision_rival(file):
    """Empty where torchvision was built without its decoder, which `file` is to show."""
    try:
        import torchvision.io
        import torchvision.transforms.functional as functional
        torchvision.io.decode_jpeg(torchvision.io.read_file(str(file)))
    except (ImportError, OSError, RuntimeError) as error:
        print(f"torchvision.io cannot be used here: {error}")
        return {}

    def decode(file):
        image = torchvision.io.decode_jpeg(torchvision.io.read_file(str(file)))
        image = functional.resize(image, SHORT_SIDE, antialias=True)
        return functional.center_crop(image, CROP).permute(1, 2, 0).numpy()

    return {"torchvision.io": decode}


def timed(decode, files):
    start = time.process_time()
    for file in files:
        decode(file)
    return len(files) / (time.process_time() - start)


def kelvin(tool, mode, files, rounds=1, output=None):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listing:
        listing.write("".join(f"{file}\n" for file in files))
        listing.flush()
        words = [tool, mode, listing.name, str(rounds)] + ([str(output)] if output else [])
        printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return max(map(float, printed.split()))


def difference(left, right):
    return np.abs(left.astype("f4") - right.astype("f4")).mean()


def compare(tool, files, rivals, folder):
    pixels = {}
    for mode in ("plain", "scaled"):
        output = folder / f"{mode}.rgb"
        kelvin(tool, mode, files, output=output)
        pixels[mode] = np.fromfile(output, "u1").reshape(len(files), CROP, CROP, 3)
    pillow = np.stack([with_pillow_box(file) for file in files])
    assert (pixels["plain"] == pillow).all(), "kelvin (plain) and Pillow must agree to the bit"
    print("kelvin (plain) = Pillow, resize with box: to the bit")
    print(f"mean difference to it: kelvin (scaled) {difference(pixels['scaled'], pillow):.2f}", end="")
    for name, decode in rivals.items():
        print(f", {name} {difference(np.stack([decode(file) for file in files]), pillow):.2f}", end="")
    print(" of 255")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", required=True, help="the program kelvin_decode_speed")
    parser.add_argument("--images", required=True, help="a folder with small pictures to begin with")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    paths = sorted(path for path in pathlib.Path(options.images).rglob("*") if path.suffix == ".JPEG")
    sets = {
        "around 500x375": (options.count, [(500, 375), (375, 500), (500, 333), (400, 300), (640, 480)]),
        "around 1600x1200": (max(options.count // 10, 1), [(1600, 1200), (1200, 1600), (1280, 960)]),
    }
    for title, (count, sizes) in sets.items():
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            files = make_set(folder, paths, count, sizes)
            weight = statistics.mean(file.stat().st_size for file in files) / 1000
            print(f"\n{title}: {count} JPEGs, quality 90, 4:2:0, {weight:.0f} kB on average")
            rivals = {
                "Pillow, box": with_pillow_box,
                "Pillow": with_pillow,
                "Pillow, draft": lambda file: with_pillow(file, has_draft=True),
                "OpenCV, linear": lambda file: with_opencv(file, cv2.INTER_LINEAR),
                "OpenCV, area": lambda file: with_opencv(file, cv2.INTER_AREA),
                **torchvision_rival(files[0]),
            }
            compare(options.tool, files, rivals, folder)
            speeds = {}
            for _ in range(options.rounds):
                for mode in ("scaled", "plain"):
                    speeds.setdefault(f"kelvin, {mode}", []).append(kelvin(options.tool, mode, files))
                for rival, decode in rivals.items():
                    speeds.setdefault(rival, []).append(timed(decode, files))
            reference = statistics.median(speeds["Pillow"])
            print(f"{'':18}{'images/s':>9}{'from':>7}{'to':>7}{'/ Pillow':>10}")
            for rival, values in speeds.items():
                median = statistics.median(values)
                print(f"{rival:18}{median:9.0f}{min(values):7.0f}{max(values):7.0f}{median / reference:10.2f}")


if __name__ == "__main__":
    main()
