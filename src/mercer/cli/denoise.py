"""``mercer denoise``: an image without its noise."""

from argparse import Namespace

import numpy as np
from PIL import Image

from .. import PatchDenoiser
from ..files import read_image
from ..files.opening import existing
from .outputs import Result, lines, whole_file

# Gray levels of an image file, the unit in which people speak of noise.
WHITE = 255


def denoise(args: Namespace) -> Result:
    """Learn the patches of the image, and project them."""
    with whole_file(args.output, args.force) as draft:
        image = read_image(existing(args.image))
        model = PatchDenoiser(
            args.patch,
            args.stride,
            kernel=args.kernel,
            n_components=args.components,
            noise=None if args.noise is None else args.noise / WHITE,
            memory=args.memory,
            n_jobs=args.threads,
            random_state=args.seed,
        ).fit(image)
        clean = model.denoise(image)
        pixels = np.rint(WHITE * np.clip(clean, 0, 1)).astype(np.uint8)
        Image.fromarray(pixels).save(draft)
    height, width = image.shape[:2]
    facts = {
        "width": width,
        "height": height,
        "channels": 1 if image.ndim == 2 else image.shape[2],
        "noise": WHITE * model.noise_,
        "noise_given": args.noise is not None,
        "change": WHITE * float(((image - clean) ** 2).mean() ** 0.5),
        "output": str(args.output),
    }
    said = [
        ("image", f"{width} x {height}, {'gray' if image.ndim == 2 else 'color'}"),
        ("noise", f"{facts['noise']:.1f} of 255, {'given' if args.noise else 'estimated'}"),
        ("change", f"{facts['change']:.1f} of 255, root mean square"),
        ("written", args.output),
    ]
    return Result(facts, lines(said))
