"""What makes a picture cost what a photograph costs to decode?

A JPEG decoder's work grows with the bits it has to read, and the bits follow from how
contrast is spread over scales. In photographs the amplitude falls about as 1/f, colours
vary less than brightness, and objects hide one another along sharp edges. These three
are drawn here: ellipses with a power law of sizes lie on top of each other ("dead
leaves"), textured by 1/f noise. Nothing in them means anything, apart from a tint that
tells the classes apart so that a model has something to learn.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Field = NDArray[np.float32]

# Changing anything that shapes the pictures has to change this: caches are keyed by it.
RECIPE = 1

WIDTH, HEIGHT = 500, 375
QUALITY = 95
CLASSES = 10

_LEAVES = 300
# Radii in pixels, distributed as r^-3: the one law that looks the same at any distance.
_SMALLEST, _LARGEST = 3.0, 200.0


def jpeg(seed: int, label: int) -> bytes:
    """Draw one picture and encode it as a camera or a web site would.

    Args:
        seed: Decides everything in it but the tint.
        label: Its class, from 0; decides the tint.
    """
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng((RECIPE, seed))
    picture = _leaves(rng, label)
    # Some photographs are sharp all over, some mostly out of focus.
    sharpness = 10 * rng.lognormal(sigma=0.6) * np.exp(0.6 * _haze(rng))
    picture[..., 0] += sharpness * _noise(rng, 1.0, HEIGHT, WIDTH)
    tint = 5 * _haze(rng)
    picture[..., 1] += tint
    picture[..., 2] -= tint
    out = io.BytesIO()
    image = Image.frombytes("YCbCr", (WIDTH, HEIGHT), _bytes(picture))
    image.save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def _leaves(rng: np.random.Generator, label: int) -> Field:
    """Ellipses over a smooth ground, larger ones first, drawn at twice the size."""
    import numpy as np
    from PIL import Image, ImageDraw

    angle = 2 * np.pi * label / CLASSES
    mean = (rng.uniform(70, 170), 128 + 16 * np.cos(angle), 128 + 16 * np.sin(angle))
    ground = np.stack([_haze(rng) for _ in range(3)], -1) * (40, 7, 7) + mean
    image = Image.frombytes("YCbCr", (WIDTH, HEIGHT), _bytes(ground))
    image = image.resize((2 * WIDTH, 2 * HEIGHT), Image.Resampling.NEAREST)
    pen = ImageDraw.Draw(image)
    law = rng.uniform(_LARGEST**-2, _SMALLEST**-2, _LEAVES)
    heights = np.sort(2 * law**-0.5)[::-1]
    widths = heights * rng.uniform(0.5, 1.5, _LEAVES)
    centres = rng.uniform(0, (2 * WIDTH, 2 * HEIGHT), (_LEAVES, 2))
    colours = np.clip(rng.normal(mean, (60, 14, 16), (_LEAVES, 3)), 8, 247).astype(int)
    for (x, y), w, h, colour in zip(centres, widths, heights, colours, strict=True):
        pen.ellipse((x - w, y - h, x + w, y + h), fill=tuple(colour))
    return np.asarray(image.reduce(2), "float32")


def _haze(rng: np.random.Generator) -> Field:
    """Noise without detail, drawn small and enlarged: it saves most of the time."""
    import numpy as np
    from PIL import Image

    small = _noise(rng, 1.6, HEIGHT // 5, WIDTH // 5)
    return np.asarray(Image.fromarray(small).resize((WIDTH, HEIGHT)))


def _noise(
    rng: np.random.Generator, steepness: float, height: int, width: int
) -> Field:
    """A field of unit variance whose amplitude falls as frequency^-steepness."""
    import numpy as np

    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    frequency[0, 0] = np.inf
    shape = (2, *frequency.shape)
    real, imaginary = rng.standard_normal(shape) * frequency**-steepness
    field = np.fft.irfft2(real + 1j * imaginary, s=(height, width))
    scaled: Field = (field / field.std()).astype("float32")
    return scaled


def _bytes(picture: NDArray[np.floating]) -> bytes:
    import numpy as np

    return bytes(np.clip(picture, 0, 255).astype("uint8"))
