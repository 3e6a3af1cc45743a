"""PyTorch's side of `kelvin bench train`: takes the same steps as kelvin, as fast as PyTorch can.

Reads JSON lines from stdin and answers each with one on stdout. The first names the file that kelvin
wrote: weights to start from, images and labels. Networks are built from the names and shapes of the
weights. {"steps": n} takes steps; {"tune": n} tries variants of the step for n steps each and stays with
the fastest.
"""
import json
import os
import struct
import sys
import time

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print is no answer


def answer(**fields):
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


request = json.loads(sys.stdin.readline())
if request["threads_given"]:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(request["threads"])
# As kelvin's own side has it: AMX ends with an illegal instruction in the oneDNN of Debian 12.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
try:
    import torch
except ImportError as error:
    answer(missing=f"{sys.executable} has no PyTorch ({error})")
    sys.exit(0)
import torch.nn as nn
import torch.nn.functional as F

TYPES = {"F32": torch.float32, "I64": torch.int64, "U8": torch.uint8}

# Settings for which this side has only one value.
ONLY = {
    "model.dropout": 0,  # what it leaves out would differ
    "model.bottleneck": 0,
    "model.norm_before_logits": "none",
    "model.norm_after_logits": "none",
    "model.attention": "softmax",
    "model.attention_temperature": 1,
    "train.optimizer": "sgd",
    "train.loss": "cross_entropy",
    "train.loss_smoothing": 0,
    "train.temperature": 1,
    "train.temperature_schedule": "constant",
    "train.schedule": "constant",
    "train.warmup_epochs": 0,
    "train.decay_vectors": True,
    "train.head_lr_scale": 1,
    "train.clip_norm": 0,
    "train.ema": 0,
    "data.augment": "none",
}


class Unable(Exception):
    """Something this side has no counterpart for."""


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = TYPES[entry["dtype"]]
        bytes_each = torch.empty(0, dtype=dtype).element_size()
        flat = torch.frombuffer(data, dtype=dtype, count=(end - begin) // bytes_each, offset=begin)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def linear(weights, name):
    outputs, inputs = weights[name + ".weight"].shape
    return nn.Linear(inputs, outputs, bias=name + ".bias" in weights)


def convolution(weights, name, stride=1):
    outputs, inputs, side, _ = weights[name + ".weight"].shape
    return nn.Conv2d(inputs, outputs, side, stride, side // 2, bias=name + ".bias" in weights)


def batch_norm(weights, name):
    return nn.BatchNorm2d(weights[name + ".weight"].shape[0])


def count_of(weights, pattern):
    """How many of "a.0.b", "a.1.b", ... there are."""
    count = 0
    while pattern.format(count) in weights:
        count += 1
    return count


class Mlp(nn.Module):
    def __init__(self, weights):
        super().__init__()
        count = count_of(weights, "layers.{}.weight")
        self.layers = nn.ModuleList(linear(weights, f"layers.{i}") for i in range(count))

    def forward(self, images):
        x = images.flatten(1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x), inplace=True)
        return self.layers[-1](x)


class ResidualBlock(nn.Module):
    def __init__(self, weights, name, stride):
        super().__init__()
        self.depth = 3 if name + ".conv3.weight" in weights else 2
        strided = 2 if self.depth == 3 else 1  # which convolution has the stride
        for i in range(1, self.depth + 1):
            conv = convolution(weights, f"{name}.conv{i}", stride if i == strided else 1)
            setattr(self, f"conv{i}", conv)
            setattr(self, f"bn{i}", batch_norm(weights, f"{name}.bn{i}"))
        self.inputs = weights[name + ".conv1.weight"].shape[1]
        self.outputs = weights[f"{name}.conv{self.depth}.weight"].shape[0]
        self.stride = stride
        self.downsample = None
        if name + ".downsample.0.weight" in weights:
            self.downsample = nn.Sequential(convolution(weights, name + ".downsample.0", stride),
                                            batch_norm(weights, name + ".downsample.1"))

    def shortcut(self, x):
        if self.downsample is not None:
            return self.downsample(x)
        if self.stride == 1 and self.inputs == self.outputs:
            return x
        added = self.outputs - self.inputs
        x = x[:, :, ::self.stride, ::self.stride]
        return F.pad(x, (0, 0, 0, 0, added // 2, added - added // 2))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        if self.depth == 3:
            y = self.bn3(self.conv3(F.relu(y, inplace=True)))
        y += self.shortcut(x)
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    def __init__(self, weights, stem_stride):
        super().__init__()
        self.has_large_stem = weights["conv1.weight"].shape[2] == 7
        self.conv1 = convolution(weights, "conv1", 2 if self.has_large_stem else stem_stride)
        self.bn1 = batch_norm(weights, "bn1")
        self.stages = 1
        while f"layer{self.stages + 1}.0.conv1.weight" in weights:
            self.stages += 1
        for stage in range(1, self.stages + 1):
            name = f"layer{stage}"
            count = count_of(weights, name + ".{}.conv1.weight")
            blocks = [ResidualBlock(weights, f"{name}.{i}", 2 if i == 0 and stage > 1 else 1)
                      for i in range(count)]
            setattr(self, name, nn.Sequential(*blocks))
        self.fc = linear(weights, "fc")

    def forward(self, images):
        x = F.relu(self.bn1(self.conv1(images)), inplace=True)
        if self.has_large_stem:
            x = F.max_pool2d(x, 3, 2, 1)
        for stage in range(1, self.stages + 1):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


class Vgg(nn.Module):
    def __init__(self, weights):
        super().__init__()
        places = sorted(int(name.split(".")[1]) for name, tensor in weights.items()
                        if name.startswith("features.") and tensor.dim() == 4)
        has_norm = f"features.{places[0] + 1}.running_mean" in weights
        layers = []
        for place, following in zip(places, places[1:] + [places[-1] + 4]):
            layers.append(convolution(weights, f"features.{place}"))
            if has_norm:
                layers.append(batch_norm(weights, f"features.{place + 1}"))
            layers.append(nn.ReLU(inplace=True))
            if following - place > (3 if has_norm else 2):
                layers.append(nn.MaxPool2d(2, 2))
        self.features = nn.Sequential(*layers)
        inputs = weights["classifier.0.weight"].shape[1]
        self.pooled_side = 7 if inputs == 49 * weights[f"features.{places[-1]}.weight"].shape[0] else 1
        self.classifier = nn.Sequential(
            linear(weights, "classifier.0"), nn.ReLU(inplace=True), nn.Identity(),
            linear(weights, "classifier.3"), nn.ReLU(inplace=True), nn.Identity(),
            linear(weights, "classifier.6"))

    def forward(self, images):
        x = F.adaptive_avg_pool2d(self.features(images), self.pooled_side)
        return self.classifier(x.flatten(1))


class Attention(nn.Module):
    def __init__(self, weights, name, heads):
        super().__init__()
        self.heads = heads
        self.qkv = linear(weights, name + ".qkv")
        self.proj = linear(weights, name + ".proj")

    def forward(self, tokens):
        samples, count, width = tokens.shape
        parts = self.qkv(tokens).view(samples, count, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        if hasattr(F, "scaled_dot_product_attention"):  # of PyTorch 2
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            logits = (q * (width // self.heads) ** -0.5) @ k.transpose(-2, -1)
            mixed = logits.softmax(-1) @ v
        return self.proj(mixed.transpose(1, 2).reshape(samples, count, width))


class Block(nn.Module):
    def __init__(self, weights, name, heads):
        super().__init__()
        width = weights[name + ".norm1.weight"].shape[0]
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(weights, name + ".attn", heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = linear(weights, name + ".mlp.fc1")
        self.mlp.fc2 = linear(weights, name + ".mlp.fc2")

    def forward(self, tokens):
        tokens = tokens + self.attn(self.norm1(tokens))
        return tokens + self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm2(tokens))))


class Vit(nn.Module):
    def __init__(self, weights, heads):
        super().__init__()
        self.cls_token = nn.Parameter(torch.empty_like(weights["cls_token"]))
        self.pos_embed = nn.Parameter(torch.empty_like(weights["pos_embed"]))
        width, channels, patch, _ = weights["patch_embed.proj.weight"].shape
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(channels, width, patch, patch,
                                          bias="patch_embed.proj.bias" in weights)
        count = count_of(weights, "blocks.{}.norm1.weight")
        self.blocks = nn.Sequential(*(Block(weights, f"blocks.{i}", heads) for i in range(count)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = linear(weights, "head")

    def forward(self, images):
        patches = self.patch_embed.proj(images).flatten(2).transpose(1, 2)
        tokens = torch.cat((self.cls_token.expand(len(images), -1, -1), patches), 1) + self.pos_embed
        return self.head(self.norm(self.blocks(tokens)[:, 0]))


HEADS = {"vit_tiny": 3, "vit_small": 6, "vit_base": 12}


def network(weights, settings):
    name = settings["model.name"]
    if name == "mlp":
        model = Mlp(weights)
    elif name.startswith("resnet"):
        model = ResNet(weights, settings["model.stem_stride"])
    elif name.startswith("vgg"):
        model = Vgg(weights)
    elif name in HEADS:
        model = Vit(weights, HEADS[name])
    else:
        raise Unable(f"has no network '{name}'")
    model.load_state_dict(weights)
    return model.train()


class Training:
    def __init__(self, tensors, settings):
        weights = {name[8:]: tensor for name, tensor in tensors.items() if name.startswith("weights/")}
        self.model = network(weights, settings)
        size = settings["train.batch_size"]
        # Ready to be used: this side never waits for data.
        images = tensors["images"].float().div_(127.5).sub_(1)
        labels = tensors["labels"].clone()  # not a part of the file in memory
        self.batches = list(zip(images.split(size), labels.split(size)))
        self.is_bf16 = settings["train.precision"] == "bf16"
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=settings["train.lr"], momentum=settings["train.momentum"],
            weight_decay=settings["train.weight_decay"], nesterov=settings["train.nesterov"])
        self.done = 0
        self.is_convolutional = settings["model.name"].startswith(("resnet", "vgg"))
        self.use(self.is_convolutional, False)

    def use(self, channels_last, foreach):
        """Where channels lie in memory, and how the optimizer goes over the parameters."""
        self.channels_last = channels_last
        self.foreach = foreach
        layout = torch.channels_last if channels_last else torch.contiguous_format
        self.batches = [(images.contiguous(memory_format=layout), labels)
                        for images, labels in self.batches]
        if self.is_convolutional:
            self.model.to(memory_format=layout)
            for state in self.optimizer.state.values():
                momentum = state.get("momentum_buffer")
                if momentum is not None and momentum.dim() == 4:
                    state["momentum_buffer"] = momentum.contiguous(memory_format=layout)
        self.optimizer.param_groups[0]["foreach"] = foreach

    def step(self):
        images, labels = self.batches[self.done % len(self.batches)]
        self.done += 1
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.is_bf16):
            logits = self.model(images)
        loss = F.cross_entropy(logits.float(), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def steps(self, count):
        start = time.perf_counter()
        losses = [self.step() for _ in range(count)]
        return {"losses": losses, "seconds": time.perf_counter() - start}

    def tune(self, count):
        best = None
        for channels_last in ((True, False) if self.is_convolutional else (False,)):
            for foreach in (False, True):
                self.use(channels_last, foreach)
                result = self.steps(count)
                if best is None or result["seconds"] < best[0]["seconds"]:
                    best = result, channels_last, foreach
        self.use(best[1], best[2])
        return {**best[0], "channels_last": best[1], "foreach": best[2]}


def main():
    settings = request["settings"]
    for key, value in ONLY.items():
        if settings.get(key, value) != value:
            raise Unable(f"knows {key} = {json.dumps(value)} only, got {json.dumps(settings[key])}")
    torch.set_num_threads(request["threads"])
    training = Training(read_safetensors(request["start"]), settings)
    answer(version=torch.__version__, threads=torch.get_num_threads())
    for line in sys.stdin:
        order = json.loads(line)
        answer(**(training.tune(order["tune"]) if "tune" in order else training.steps(order["steps"])))


try:
    main()
except Unable as error:
    answer(error=f"PyTorch's side {error}; see --without-pytorch")
except Exception as error:
    answer(error=f"PyTorch's side: {type(error).__name__}: {error}".replace("\n", " "))
