"""Five sets of images, float32 ``[n, c, h, w]``, each channel of mean 0 and deviation 1."""

import io
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import pad

from benchmarks.common.folder import path

FILES = {
    "celeba": "celeba/celeba_10k_32px.npz",
    "cifar10": "cifar10/cifar10_20k_10k.npz",
    "cifar100": "cifar100/cifar100_10k_5k.npz",
    "catdog": "catdog/catdog_10k_32px.npz",
    "fashion_mnist": "fashion_mnist/fashion_mnist.npz",
    "fashion": "fashion_mnist/fashion_mnist.npz",  # with a black frame, 32 x 32
}


class Images(NamedTuple):
    """Images and labels; ``test`` is empty where the set has no official test images.

    Labels are classes; of CelebA, 0/1 columns named by ``names``.
    """

    train: Tensor
    labels: Tensor
    test: Tensor
    test_labels: Tensor
    names: tuple[str, ...]

    def column(self, name: str) -> Tensor:
        """One attribute of CelebA as 0/1, or one class against the rest."""
        place = self.names.index(name)
        return self.labels[:, place] if self.labels.ndim == 2 else (self.labels == place).long()


class ImageParts(NamedTuple):
    """Images and labels of the three parts of a task."""

    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


def split_task(task: str, order: Callable[[int], tuple[Tensor, Tensor, Tensor]]) -> ImageParts:
    """The parts of ``celeba/Smiling`` or ``cifar10/horse``: a column against the rest.

    ``order`` gives the rows of the three parts of so many images; CIFAR has test images of its own.
    """
    data, column = task.split("/", 1)
    found = load(data)
    labels = found.column(column)
    parts = [(found.train[rows], labels[rows]) for rows in order(len(labels))]
    if len(found.test):
        parts[2] = (found.test, (found.test_labels == found.names.index(column)).long())
    return ImageParts(*parts)


@lru_cache(maxsize=2)
def load(name: str) -> Images:
    """The set ``name``: celeba, cifar10, cifar100, catdog or fashion."""
    with np.load(path(FILES[name])) as z:
        images = [_unpack(z, "X"), _unpack(z, "X_test") if "X_test_shape" in z.files else None]
        if name == "fashion":
            images = [each if each is None else pad(each, [2] * 4) for each in images]
        if name == "celeba":
            labels, tests, names = z["attributes"], None, z["attribute_names"]
        else:
            labels = z["y"]
            tests = z["y_test"] if "y_test" in z.files else None
            names = z["class_names"]
    train = images[0].float()
    mean = train.mean((0, 2, 3), keepdim=True)
    scale = train.std((0, 2, 3), keepdim=True)
    test = train[:0] if images[1] is None else images[1].float()
    labels = torch.as_tensor(labels.astype(np.int64))
    tests = labels[:0] if tests is None else torch.as_tensor(tests.astype(np.int64))
    return Images(
        (train - mean) / scale, labels, (test - mean) / scale, tests, tuple(map(str, names))
    )


def _unpack(z: np.lib.npyio.NpzFile, prefix: str) -> Tensor:
    """Images from lossless tile sheets, one sheet after the other, as ``[n, 3, h, w]``."""
    n, h, w, c = z[prefix + "_shape"]
    sheets = []
    for key in sorted(k for k in z.files if k.startswith(prefix + "_webp")):
        sheet = np.asarray(Image.open(io.BytesIO(z[key].tobytes())))
        rows, columns = sheet.shape[0] // h, sheet.shape[1] // w
        tiles = sheet.reshape(rows, h, columns, w, c).swapaxes(1, 2)
        sheets.append(tiles.reshape(-1, h, w, c))
    return torch.as_tensor(np.concatenate(sheets)[:n]).permute(0, 3, 1, 2).contiguous()
