r"""An operation on images: finds edges by Sobel's operator. Needs `pip install numpy`.

python -m invoker functions.edges:edges
curl -H 'Content-Type: application/json' -d '[[[0, 0, 0], [255, 255, 255]]]' localhost:8080

Each message is one image, so for a stream of images the result is a stream of edges.
"""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

# The weights of red, green and blue for brightness, from ITU-R BT.601.
BRIGHTNESS = np.array([0.299, 0.587, 0.114], np.float32)

Image = Annotated[NDArray[np.uint8], ("height", "width", 3), "red, green, blue"]
Edges = Annotated[NDArray[np.uint8], ("height", "width"), "0 where nothing changes, 255 at the sharpest edges"]


def edges(image: Image) -> Edges:
    """The edges of an image; beyond the border, the pixels of the border are repeated."""
    if image.size == 0:
        return np.zeros(image.shape[:2], np.uint8)
    grey = np.pad(image @ BRIGHTNESS, 1, mode="edge")
    across = grey[:, 2:] - grey[:, :-2]
    down = grey[2:] - grey[:-2]
    horizontal = across[:-2] + 2 * across[1:-1] + across[2:]
    vertical = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    return np.minimum(np.hypot(horizontal, vertical) / 4, 255).round().astype(np.uint8)
