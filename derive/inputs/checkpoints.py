"""Arrays from a checkpoint of a trained network, without executing anything in the file.

`.npz` is read without pickles, `.safetensors` by the reader below (eight bytes of header length, a JSON header, one
buffer), and PyTorch files by torch, if installed, restricted to weights. A file is validated as a whole before the
first array is read. A damaged array is reported; the others are read one at a time, on demand. Memory is allocated only
after the size of an array is known to be within bounds.
"""

from __future__ import annotations

import importlib
import math
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from derive.errors import CheckpointError, DeriveError
from derive.support.bounds import (
    ARCHIVE_COUNT,
    ARCHIVE_HEADER,
    ARCHIVE_SIZE,
    ARRAY_EXPANSION,
    ARRAY_FREE_SIZE,
    ARRAY_SIZE,
)
from derive.support.guarded import opened_file, parsed_json
from derive.support.plain_words import printable
from derive.support.shapes import fits

NEWEST_UNSAFE_TORCH = (2, 5)
"""Newest version of torch in which loading weights only may execute code."""

SAFETENSORS_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
    "BOOL": "u1",
}
BITS_OF_OTHERS = {
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "C64": 64,
}
"""Bits of data types that are validated but not read as weights."""

NOT_HERE = 0xFFFFFFFF
"""Marker of a zip archive for a number with more than 32 bits, stored elsewhere."""

TORCH_SUFFIXES = (".pt", ".pth", ".bin")


@dataclass(frozen=True)
class Entry:
    """One array of a checkpoint: its description, and how to read it.

    `unusable` says why it cannot be read as weights, and `broken` what is damaged; None otherwise.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    read: Callable[[], np.ndarray]
    unusable: str | None = None
    broken: str | None = None


def read_checkpoint(path: Path) -> tuple[Entry, ...]:
    """Return all arrays of a checkpoint, in the order of the file."""
    suffix = path.suffix.lower()
    readers = {".npz": _read_npz, ".safetensors": _read_safetensors, **dict.fromkeys(TORCH_SUFFIXES, _read_torch)}
    return _entries(path, readers.get(suffix))


def read_npz(path: Path) -> tuple[Entry, ...]:
    """Return all arrays of a NumPy archive, regardless of its suffix."""
    return _entries(path, _read_npz)


def _entries(path: Path, reader: Callable[[Path], tuple[Entry, ...]] | None) -> tuple[Entry, ...]:
    """Return the entries that a reader returns; errors about malformed bytes become one sentence."""
    with opened_file(path, ARCHIVE_SIZE, CheckpointError) as (_, size):
        if reader is None:
            raise CheckpointError(
                f"{path} is not one of .npz, .safetensors, .pt, .pth, .bin; save the arrays as one of these"
            )
        if size == 0:
            raise CheckpointError(f"{path} is empty; save the checkpoint again")
    try:
        entries = reader(path)
    except DeriveError:
        raise
    except OSError as error:
        raise CheckpointError(f"cannot read {path} ({error.strerror or error}); check the file") from None
    except MemoryError:
        raise CheckpointError(f"{path} does not fit into memory; save fewer arrays per file") from None
    except Exception as error:  # noqa: BLE001 - what decompressors and parsers raise on foreign bytes has no common kind
        raise CheckpointError(f"{path} is damaged or of another format ({_first_line(error)}); save it again") from None
    if not entries:
        raise CheckpointError(f"{path} contains no arrays; save the weights as named arrays")
    if len(entries) > ARCHIVE_COUNT.most:
        raise CheckpointError(f"{path} contains {len(entries)} arrays, but at most {ARCHIVE_COUNT} are allowed")
    refuse_same_names(str(path), entries)
    return entries


def refuse_same_names(source: str, entries: tuple[Entry, ...]) -> None:
    """Raise if two arrays of a file or model have the same name."""
    twice = [name for name, count in Counter(entry.name for entry in entries).items() if count > 1]
    if twice:
        raise CheckpointError(f"{source} contains {twice[0]} twice; give each array a unique name")


def load(source: str, entry: Entry) -> np.ndarray:
    """Return the array of one entry of a file or model; raise if it cannot be read, without affecting the others."""
    if entry.broken is not None:
        raise CheckpointError(f"{source}: {entry.name}: {entry.broken}")
    try:
        return entry.read()
    except DeriveError:
        raise
    except OSError as error:
        raise CheckpointError(
            f"cannot read {entry.name} of {source} ({error.strerror or error}); check the file"
        ) from None
    except MemoryError:
        raise CheckpointError(f"{source}: {entry.name} does not fit into memory; leave it out with --exclude") from None
    except Exception as error:  # noqa: BLE001 - foreign bytes, as above
        raise CheckpointError(f"{source}: {entry.name} cannot be read ({_first_line(error)}); save it again") from None


def _too_large(size: int, stored: int) -> str | None:
    """Return why an array of `size` bytes, `stored` of them in the file, is refused; None if it is not."""
    if size > ARRAY_SIZE.most:
        return f"has {size} bytes, but at most {ARRAY_SIZE} are allowed"
    if size > max(ARRAY_FREE_SIZE.most, ARRAY_EXPANSION.most * stored):
        return f"{stored} bytes would expand to {size}, more than {ARRAY_EXPANSION}; save it with numpy.savez"
    return None


# NumPy


def _read_npz(path: Path) -> tuple[Entry, ...]:
    with opened_file(path, ARCHIVE_SIZE, CheckpointError) as (file, size):
        _check_directory(path, file, size)
        with zipfile.ZipFile(file) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            return tuple(_npz_entry(path, archive, member) for member in members)


def _check_directory(path: Path, file: BinaryIO, size: int) -> None:
    """Refuse an archive directory that is too long, before the archive reader loads it whole."""
    if file.read(6) == b"\x93NUMPY":
        raise CheckpointError(f"{path} holds one array without a name; save named arrays with numpy.savez")
    file.seek(max(0, size - (1 << 16) - 22))
    end = file.read()
    place = end.rfind(b"PK\x05\x06")
    if place < 0 or place + 22 > len(end):
        raise CheckpointError(f"{path} is damaged or not an .npz file; save it again with numpy.savez")
    (length,) = struct.unpack_from("<I", end, place + 12)
    longer = end.rfind(b"PK\x06\x06", 0, place)
    if length == NOT_HERE and 0 <= longer <= place - 48:
        (length,) = struct.unpack_from("<Q", end, longer + 40)
    if length > ARCHIVE_HEADER.most:
        raise CheckpointError(
            f"{path} has a list of arrays of {length} bytes, but at most {ARCHIVE_HEADER} are allowed"
        )
    file.seek(0)


def _npz_entry(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Entry:
    name = printable(member.filename).removesuffix(".npy")
    if not member.filename.endswith(".npy"):
        return Entry(name, (), "file", _nothing, unusable="not an array")
    try:
        with archive.open(member) as stream:
            shape, dtype, offset = _npy_header(stream)
    except Exception as error:  # noqa: BLE001 - foreign bytes: what a decompressor or a parser raises has no common kind
        return Entry(name, (), "unknown", _nothing, broken=f"not a NumPy array ({_first_line(error)})")
    kind = str(dtype)
    if dtype.hasobject:
        return Entry(name, shape, "object", _nothing, unusable="pickled Python objects, which are never loaded")
    if math.prod(shape) * dtype.itemsize != member.file_size - offset:
        reason = f"declares {_times(shape)} numbers of type {kind}, but contains {member.file_size - offset} bytes"
        return Entry(name, shape, kind, _nothing, broken=f"truncated or damaged: {reason}")
    if (too_large := _too_large(member.file_size, member.compress_size)) is not None:
        return Entry(name, shape, kind, _nothing, broken=too_large)

    def read() -> np.ndarray:
        with (
            opened_file(path, ARCHIVE_SIZE, CheckpointError) as (file, _),
            zipfile.ZipFile(file) as again,
            again.open(member) as stream,
        ):
            array: np.ndarray = np.lib.format.read_array(stream, allow_pickle=False)
            if stream.read(1):  # at the end the archive's checksum is compared
                raise ValueError("more bytes than the array has")
            return array

    return Entry(name, shape, kind, read, unusable=_unusable(dtype))


def _npy_header(stream: Any) -> tuple[tuple[int, ...], np.dtype, int]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"version {version[0]}.{version[1]} of the format is for records")
    return shape, dtype, stream.tell()


def _unusable(dtype: np.dtype) -> str | None:
    if dtype.kind in "fiu":
        return None
    if dtype.kind == "V" and dtype.names is None and dtype.itemsize == 2:
        return "two-byte records; a bfloat16 array must be saved as float32, or as safetensors"
    return {"b": "Boolean values, not weights", "c": "complex numbers"}.get(
        dtype.kind, f"type {dtype} is not a weight type"
    )


# safetensors


@dataclass(frozen=True)
class _Tensor:
    """The header of one tensor: type, shape, and byte range in the buffer."""

    name: str
    kind: str
    shape: tuple[int, ...]
    begin: int
    end: int


def _read_safetensors(path: Path) -> tuple[Entry, ...]:
    with opened_file(path, ARCHIVE_SIZE, CheckpointError) as (stream, size):
        header, start = _safetensors_header(path, stream, size)
    header.pop("__metadata__", None)
    entries = {printable(name): entry for name, entry in header.items()}
    if len(entries) < len(header):
        raise CheckpointError(f"{path} contains names that look alike; save each array under a unique name")
    tensors, broken = dict[str, _Tensor](), dict[str, str]()
    for name, entry in entries.items():
        try:
            tensors[name] = _described(name, entry)
        except ValueError as error:
            broken[name] = f"the header is wrong: {error}"
    broken |= _misplaced(tensors.values(), size - start)
    if not broken:
        _check_filled(path, tensors.values(), size - start)
    return tuple(
        _safetensors_entry(path, tensors[name], start, broken.get(name))
        if name in tensors
        else Entry(name, (), "unknown", _nothing, broken=broken[name])
        for name in entries
    )


def _safetensors_header(path: Path, stream: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    """Return the header and the offset of the buffer."""
    if size < 8:
        raise CheckpointError(f"{path} is truncated: {size} bytes are not a safetensors file; save it again")
    length = int.from_bytes(stream.read(8), "little")
    if length > ARCHIVE_HEADER.most:
        raise CheckpointError(
            f"{path} declares a header of {length} bytes, but safetensors allows {ARCHIVE_HEADER.most}; this is "
            "not a safetensors file, or it is damaged"
        )
    if length > size - 8:
        raise CheckpointError(
            f"{path} is truncated: its header should have {length} bytes, but {size - 8} are present; save it again"
        )
    raw = stream.read(length)
    try:
        if not raw.startswith(b"{"):
            raise ValueError("it does not begin with a brace")
        header: dict[str, Any] = parsed_json(raw)
    except ValueError as error:
        raise CheckpointError(f"{path} has an invalid safetensors header ({error}); save it again") from None
    return header, 8 + length


def _described(name: str, entry: Any) -> _Tensor:
    """Return the description of one tensor, or what is wrong with it."""
    if not fits(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError("dtype, shape and data_offsets are needed")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not _whole(shape) or not _whole(offsets) or len(offsets) != 2 or len(shape) > 64:
        raise ValueError("shape and data_offsets are lists of whole numbers")
    if not fits(kind, str) or (kind not in SAFETENSORS_TYPES and kind not in BITS_OF_OTHERS):
        raise ValueError(f"the type {str(kind)[:40]!r} is unknown; save the weights as F32 or BF16")
    bits = BITS_OF_OTHERS[kind] if kind in BITS_OF_OTHERS else 8 * np.dtype(SAFETENSORS_TYPES[kind]).itemsize
    begin, end = offsets
    if 8 * (end - begin) != math.prod(shape) * bits:
        raise ValueError(
            f"{_times(shape)} numbers of type {kind} do not fill the {end - begin} bytes from {begin} to {end}"
        )
    return _Tensor(name, kind, tuple(shape), begin, end)


def _whole(values: Any) -> bool:
    return fits(values, list[int]) and all(value >= 0 for value in values)


def _misplaced(tensors: Iterable[_Tensor], size: int) -> dict[str, str]:
    """Return the tensors whose byte range lies outside the buffer or overlaps another."""
    problems: dict[str, str] = {}
    furthest: _Tensor | None = None
    for tensor in sorted(tensors, key=lambda t: (t.begin, t.end)):
        if furthest is not None and tensor.begin < furthest.end and tensor.begin < tensor.end:
            problems[tensor.name] = f"its bytes overlap with those of {furthest.name!r}"
            problems.setdefault(furthest.name, f"its bytes overlap with those of {tensor.name!r}")
        if furthest is None or tensor.end > furthest.end:
            furthest = tensor
        if tensor.end > size:
            problems[tensor.name] = f"truncated: it ends at byte {tensor.end} of a buffer of {size}"
    return problems


def _check_filled(path: Path, tensors: Iterable[_Tensor], size: int) -> None:
    """Raise unless the tensors fill the buffer from its first byte to its last."""
    reached, before = 0, "the beginning of the buffer"
    for tensor in sorted(tensors, key=lambda t: (t.begin, t.end)):
        if tensor.begin != reached:
            raise CheckpointError(
                f"{path}: {tensor.name!r} leaves a gap after {before}; the file is damaged, save it again"
            )
        reached, before = tensor.end, repr(tensor.name)
    if reached != size:
        raise CheckpointError(
            f"{path}: {size - reached} bytes at the end do not belong to a tensor; save the file again"
        )


def _safetensors_entry(path: Path, tensor: _Tensor, start: int, broken: str | None) -> Entry:
    name, kind, shape, length = tensor.name, tensor.kind, tensor.shape, tensor.end - tensor.begin

    def read() -> np.ndarray:
        with opened_file(path, ARCHIVE_SIZE, CheckpointError) as (stream, _):
            stream.seek(start + tensor.begin)
            raw = stream.read(length)
        if len(raw) != length:
            raise CheckpointError(f"{path}: {name} is truncated; the file changed while it was read")
        array = np.frombuffer(raw, dtype=SAFETENSORS_TYPES[kind])
        return (from_bfloat16(array) if kind == "BF16" else array).reshape(shape)

    if kind in BITS_OF_OTHERS:
        unusable: str | None = f"type {kind} is not supported; save it as BF16 or F32"
    else:
        unusable = "Boolean values, not weights" if kind == "BOOL" else None
    return Entry(name, shape, kind, read, unusable, broken or _too_large(length, length))


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    """Return bfloat16 as float32, of which it is the upper half."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


# PyTorch


def _read_torch(path: Path) -> tuple[Entry, ...]:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise CheckpointError(
            f"{path} is a PyTorch file and torch is not installed here; install torch, or save the state dict with "
            "safetensors.torch.save_file or numpy.savez"
        ) from None
    version = str(torch.__version__)
    if _version(version) <= NEWEST_UNSAFE_TORCH:
        raise CheckpointError(
            f"{path}: torch {version} can run code hidden in a checkpoint; update torch to 2.6 or newer, or save the "
            "state dict as .safetensors"
        )
    try:
        _check_expansion(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, DeriveError):
        raise
    except Exception as error:  # torch raises what its restricted loader meets: nothing narrower covers it
        raise CheckpointError(
            f"{path} cannot be loaded as weights only ({_first_line(error)}); save model.state_dict() by itself"
        ) from None
    leaves = flat(content)
    return tuple(torch_entry(printable(name), tensor) for name, tensor in leaves if isinstance(tensor, torch.Tensor))


def _check_expansion(path: Path) -> None:
    """Refuse a PyTorch file whose parts decompress to more memory than its bytes allow."""
    if not zipfile.is_zipfile(path):
        return  # as torch wrote them before version 1.6: the bytes stand there as they are
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if (too_large := _too_large(member.file_size, member.compress_size)) is not None:
                raise CheckpointError(f"{path}: {member.filename}: {too_large}")


def _version(text: str) -> tuple[int, ...]:
    parts = text.split("+")[0].split(".")[:2]
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in parts)


def flat(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of nested dictionaries, named by their path."""
    if isinstance(value, Mapping):
        return [leaf for key, part in value.items() for leaf in flat(part, f"{name}.{key}" if name else str(key))]
    return [(name or "tensor", value)]


def torch_entry(name: str, tensor: Any) -> Entry:
    """Return the entry of a tensor of torch, on any device."""
    kind = str(tensor.dtype).removeprefix("torch.")
    floating = tensor.is_floating_point()
    real = floating or kind.startswith(("int", "uint"))

    def read() -> np.ndarray:
        numbers = tensor.detach().cpu()
        return (numbers.double() if kind == "float64" or not floating else numbers.float()).numpy()

    return Entry(name, tuple(tensor.shape), kind, read, unusable=None if real else f"type {kind} is not a weight type")


def _nothing() -> np.ndarray:
    raise CheckpointError("these bytes are not numbers")


def _times(shape: Any) -> str:
    return " x ".join(map(str, shape)) or "1"


def _first_line(error: Exception) -> str:
    return printable((str(error).strip().splitlines() or [type(error).__name__])[0][:100])
