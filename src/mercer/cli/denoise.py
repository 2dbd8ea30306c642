"""``mercer denoise``: an image without its noise."""

from argparse import ArgumentParser, Namespace

from .options import add_budget, add_output, image_path, positive, whole
from .registries import RegistryNames
from .results import Result, lines

SUMMARY = "Denoise an image by kernel PCA of its patches."
EXAMPLES = """\
  mercer denoise demo-output/noisy.png -o denoised.png
"""
# Gray levels of an image file, the unit in which people speak of noise.
WHITE = 255


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("image", metavar="IMAGE", help="gray or color image; alpha is dropped")
    # With a linear kernel the strong setting, see docs/denoising.md.
    group = parser.add_argument_group("patches")
    group.add_argument("--patch", type=whole(2), default=11, metavar="P", help="side (default: 11)")
    group.add_argument("--stride", type=whole(1), default=1, metavar="S", help="default: 1")
    group.add_argument(
        "--noise",
        type=positive,
        metavar="S",
        help="standard deviation of the noise, in gray levels of 0 to 255 (default: estimated)",
    )
    group.add_argument(
        "--kernel",
        choices=RegistryNames("kernels", "KERNELS", without=("polynomial", "precomputed")),
        default="linear",
        metavar="NAME",
        help="default: linear, the best and fastest for images",
    )
    group.add_argument("-r", "--components", type=whole(1), metavar="R", help="components kept")
    add_budget(parser)
    add_output(parser, image_path, "image: .png, .tif, .bmp, .jpg", required=True)


def run(args: Namespace) -> Result:
    """Learn the patches of the image, and project them."""
    from .. import PatchDenoiser
    from ..files import read_image
    from ..files.opening import existing
    from .outputs import whole_file

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
        save_image(draft, clean)
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
    return Result(facts, summary(facts))


def save_image(path, image) -> None:
    """Write values from 0 to 1 as gray levels or colors."""
    import numpy as np
    from PIL import Image

    Image.fromarray(np.rint(WHITE * np.clip(image, 0, 1)).astype(np.uint8)).save(path)


def summary(facts: dict) -> str:
    """The outcome for people."""
    origin = "given" if facts["noise_given"] else "estimated"
    shade = "gray" if facts["channels"] == 1 else "color"
    return lines(
        [
            ("image", f"{facts['width']} x {facts['height']}, {shade}"),
            ("noise", f"{facts['noise']:.1f} of 255, {origin}"),
            ("change", f"{facts['change']:.1f} of 255, root mean square"),
            ("written", facts["output"]),
        ]
    )
