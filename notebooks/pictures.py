"""Write pictures of the manual, the first outputs of stored notebooks. Run: python notebooks/pictures.py

The picture of the README is what its first command draws, at half the size.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

HERE = Path(__file__).parent
SHOWN = ("fig_extensive_chi", "digits_cnn")
"""Notebooks whose first picture the manual shows."""


def first_picture(notebook: Path) -> bytes:
    """The first PNG among the outputs of a notebook."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    encoded = next(output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {}))
    return base64.b64decode("".join(encoded))


def main() -> None:
    for name in SHOWN:
        path = HERE / "pictures" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(first_picture(HERE / f"{name}.ipynb"))
        print(f"wrote {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
