"""``python -m tests.picture``: take the picture of the page that README.md shows, of the function that it serves.

It takes Chromium and the packages of `make interop`, and overwrites docs/page.png.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from invoker.testing import TestServer
from tests.interop.tools import answered, leave
from tests.pages import ROOT, steps

PICTURE = ROOT / "docs/page.png"
SCRIPT = ROOT / "tests/interop/page.js"
SIZE = {"width": 1200, "height": 640}


def take(file: Path) -> None:
    """Serve the first module of the README, run its function in the page, and write what is seen while it runs.

    Raises:
        SystemExit: There is no Chromium, or it did not come so far.
    """
    if (chromium := shutil.which("chromium") or shutil.which("chromium-browser")) is None:
        sys.exit("the picture of the page takes Chromium (Debian: apt-get install chromium)")
    module = next(one.text for one in steps((ROOT / "README.md").read_text()) if one.kind == "python")
    name = module.split()[1]
    with tempfile.TemporaryDirectory(prefix="invoker-picture-") as folder:
        path = Path(folder, name)
        path.write_text(module.replace("sleep(0.2)", "sleep(0.7)"))  # long enough for the frames to be seen, too
        server = TestServer(str(path))
        try:
            options = {"chromium": chromium, "viewport": SIZE, "file": str(file), "limitMs": 20_000}
            question = {"scenario": "readme", "base": f"http://{server.http}/", "options": options}
            answered(SCRIPT, question, limit_s=60)
        except RuntimeError as error:
            sys.exit(str(error))
        finally:
            leave()
            server.close()


if __name__ == "__main__":
    take(PICTURE)
    print(f"wrote {PICTURE}")
