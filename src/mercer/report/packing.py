"""Arrays and texts as a page can hold them: compact, and harmless whatever they contain."""

import base64
import json
import zlib

import numpy as np

# What a text must not contain inside a script element, written as JSON allows it.
HARMLESS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def pack(array, kind: str) -> dict:
    """An array as base64 of a zlib stream of little-endian numbers.

    Parameters
    ----------
    array : array
    kind : "f4", "i4", "u2" or "u1"
        Type of the numbers in the page.
    """
    flat = np.ascontiguousarray(array, dtype=f"<{kind}")
    return {"kind": kind, "data": base64.b64encode(zlib.compress(flat.tobytes(), 6)).decode()}


def unpack(packed: dict) -> np.ndarray:
    """The numbers of `pack`, flat: what the page's own script does."""
    stream = base64.b64decode(packed["data"])
    return np.frombuffer(zlib.decompress(stream), dtype=f"<{packed['kind']}")


def script_json(value) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or begins one."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character, escape in HARMLESS.items():
        text = text.replace(character, escape)
    return text
