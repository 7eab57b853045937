r"""An operation on images: where brightness changes, by Sobel's operator. Takes `pip install numpy`.

python -m invoker functions.edges:edges
curl -H 'Content-Type: application/json' -d '[[[0, 0, 0], [255, 255, 255]]]' localhost:8080

One image a message, so a stream of them is a stream of edges.
"""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

# Weights of red, green and blue in brightness, as ITU-R BT.601 has them.
BRIGHTNESS = np.array([0.299, 0.587, 0.114], np.float32)

Image = Annotated[NDArray[np.uint8], ("height", "width", 3), "red, green, blue"]
Edges = Annotated[NDArray[np.uint8], ("height", "width"), "0 where nothing changes, 255 at the sharpest edges"]


def edges(image: Image) -> Edges:
    """The edges of an image; beyond its border it goes on as it ends."""
    if image.size == 0:
        return np.zeros(image.shape[:2], np.uint8)
    grey = np.pad(image @ BRIGHTNESS, 1, mode="edge")
    across = grey[:, 2:] - grey[:, :-2]
    down = grey[2:] - grey[:-2]
    horizontal = across[:-2] + 2 * across[1:-1] + across[2:]
    vertical = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    return np.minimum(np.hypot(horizontal, vertical) / 4, 255).round().astype(np.uint8)
