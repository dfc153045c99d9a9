# SPDX-License-Identifier: Apache-2.0
"""Buffers of other libraries, by protocol and without a copy.

What a call needs of an object is an address, a number of bytes, an element type and
whether it may be written. They come from, in this order:

  the buffer protocol         bytes, bytearray, memoryview, array.array, mmap, ctypes, NumPy
  __dlpack__                  torch, CuPy, JAX, ...: host memory and CUDA devices
  __cuda_array_interface__    Numba, older CuPy, ...
  __array_interface__         NumPy with element types that the buffer protocol lacks (bf16)

The object that keeps the memory (a memoryview, a capsule, the object itself) is held as long
as the Buffer lives.
"""

from __future__ import annotations

import array
import ctypes
from ctypes import (POINTER, Structure, byref, c_char, c_char_p, c_int, c_int32, c_int64,
                    c_ssize_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object)
from typing import Any, Dict, Optional, Tuple

from . import _c
from ._errors import InvalidError

# ---- element types ----


class Type:
    """How elements of a buffer travel: as `per` elements of a type of the library."""

    __slots__ = ("name", "code", "size", "per", "kind", "format")

    def __init__(self, name: str, per: int = 1, kind: str = "number",
                 format: Optional[str] = None) -> None:
        self.name = name
        self.code = _c.TYPE[name.upper()]
        self.size = _c.lib.hk_type_size(self.code) * per
        self.per = per
        self.kind = kind           # "number", "bool" or "complex"
        self.format = format       # of the struct module; None: it has none

    def __repr__(self) -> str:
        return f"<hocket type {self.name}>"


_FORMATS = {"int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
            "int64": "q", "uint64": "Q", "fp16": "e", "fp32": "f", "fp64": "d"}
TYPES: Dict[str, Type] = {name.lower(): Type(name.lower(), format=_FORMATS.get(name.lower()))
                          for name in _c.TYPE}
_BOOL = Type("uint8", kind="bool", format="?")
_COMPLEX = {8: Type("fp32", 2, "complex"), 16: Type("fp64", 2, "complex")}

# Names that other libraries use: numpy.dtype.name, str(torch.dtype), ml_dtypes.
_NAMES = dict(TYPES)
_NAMES.update({"float16": TYPES["fp16"], "half": TYPES["fp16"], "float32": TYPES["fp32"],
               "float": TYPES["fp32"], "float64": TYPES["fp64"], "double": TYPES["fp64"],
               "bfloat16": TYPES["bf16"], "float8_e4m3fn": TYPES["fp8e4m3"],
               "float8_e5m2": TYPES["fp8e5m2"], "bool": _BOOL, "complex64": _COMPLEX[8],
               "complex128": _COMPLEX[16]})

_SIGNED = {1: TYPES["int8"], 2: TYPES["int16"], 4: TYPES["int32"], 8: TYPES["int64"]}
_UNSIGNED = {1: TYPES["uint8"], 2: TYPES["uint16"], 4: TYPES["uint32"], 8: TYPES["uint64"]}
_FLOAT = {2: TYPES["fp16"], 4: TYPES["fp32"], 8: TYPES["fp64"]}

# Formats of the struct module and of PEP 3118, without what tells the byte order.
_KINDS: Dict[str, Dict[int, Type]] = {}
for _letter in "bhilqn":
    _KINDS[_letter] = _SIGNED
for _letter in "BHILQNc":
    _KINDS[_letter] = _UNSIGNED
for _letter in "efd":
    _KINDS[_letter] = _FLOAT
_KINDS["?"] = {1: _BOOL}
_KINDS["Zf"] = _KINDS["Zd"] = _COMPLEX


def type_named(name: Any) -> Type:
    """The type of a name ("fp32", "bf16", "float32", ...) or of a dtype."""
    if isinstance(name, Type):
        return name
    text = name if isinstance(name, str) else getattr(name, "name", None) or str(name)
    key = text.lower().rsplit(".", 1)[-1]
    found = _NAMES.get(key) or _NAMES.get(key.replace("-", "").replace("_", ""))
    if found is None:
        raise InvalidError(f"there is no element type '{text}'; the types are "
                           + ", ".join(TYPES))
    return found


def _type_of_format(fmt: str, itemsize: int) -> Type:
    order, letter = (fmt[0], fmt[1:]) if fmt and fmt[0] in "@=<>!" else ("@", fmt)
    found = _KINDS.get(letter, {}).get(itemsize)
    if found is None or (order in ">!" and itemsize > 1):
        raise InvalidError(f"elements of format '{fmt}' have no type here; pass type=, one of "
                           + ", ".join(TYPES))
    return found


# By format and size, as memoryview has them; filled as they are met.
_formats: Dict[Tuple[str, int], Type] = {}


# ---- buffers ----


class Buffer:
    """Memory that calls read or write, looked up once.

    hocket.buffer(x) makes one of any object that the calls take. Passing it to calls again
    and again saves the look-up; while it lives, the object cannot be resized.
    """

    __slots__ = ("address", "nbytes", "type", "count", "readonly", "device", "owner", "_keep",
                 "_args", "__weakref__")

    def __init__(self, address: int, nbytes: int, type: Optional[Type], readonly: bool,
                 owner: Any, keep: Any, device: str = "cpu") -> None:
        self.address = address
        self.nbytes = nbytes
        self.type = type
        self.count = nbytes // type.size if type else 0   # elements, as the owner counts
        self.readonly = readonly
        self.device = device      # "cpu" or "cuda"
        self.owner = owner        # what the caller passed: calls return it
        self._keep = keep
        self._args: Optional[Tuple[Any, ...]] = None

    def prepared(self) -> Tuple[Any, ...]:
        """Arguments of a call in place on numbers, as ctypes takes them fastest; else ()."""
        if self._args is None:
            self._args = ()
            if self.type is not None and self.type.kind == "number" and not self.readonly \
                    and self.nbytes % self.type.size == 0:
                at = c_void_p(self.address)
                self._args = (at, at, c_uint64(self.count), c_int(self.type.code))
        return self._args

    def __repr__(self) -> str:
        name = self.type.name if self.type else "?"
        return f"<hocket.Buffer of {self.nbytes} bytes, {name}, {self.device}>"


class _PyBuffer(Structure):
    """Py_buffer, the same from 3.9 to 3.13."""
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t),
                ("itemsize", c_ssize_t), ("readonly", c_int), ("ndim", c_int),
                ("format", c_char_p), ("shape", c_void_p), ("strides", c_void_p),
                ("suboffsets", c_void_p), ("internal", c_void_p)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = (py_object, POINTER(_PyBuffer), c_int)
_get_buffer.restype = c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = (POINTER(_PyBuffer),)
_release_buffer.restype = None
_PYBUF_SIMPLE = 0


def _address_readonly(view: memoryview) -> int:
    raw = _PyBuffer()
    _get_buffer(view, byref(raw), _PYBUF_SIMPLE)
    address = raw.buf or 0
    _release_buffer(byref(raw))    # view itself keeps the memory
    return address


_from_buffer = c_char.from_buffer
_addressof = ctypes.addressof


def _by_buffer(x: Any, view: memoryview) -> Buffer:
    if not view.c_contiguous:
        raise InvalidError("the buffer is not contiguous; pass a contiguous copy of it")
    readonly = view.readonly
    nbytes = view.nbytes
    if readonly or not nbytes:
        keep: Any = view
        address = _address_readonly(view)
    else:
        keep = _from_buffer(view)
        address = _addressof(keep)
    cls = x.__class__
    if cls.__module__ == "numpy" and cls.__name__ == "ndarray" and cls not in _quick:
        _quick[cls] = _of_numpy
    key = (view.format, view.itemsize)
    kind = _formats.get(key)
    if kind is None:
        try:
            kind = _formats[key] = _type_of_format(*key)
        except InvalidError:
            kind = None            # the caller has to name it
    return Buffer(address, nbytes, kind, readonly, x, keep)


# ---- DLPack ----


class _DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _DLManaged(Structure):
    _fields_ = [("tensor", _DLTensor), ("ctx", c_void_p), ("deleter", c_void_p)]


class _DLVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("ctx", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _DLTensor)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = (py_object, c_char_p)
_capsule_pointer.restype = c_void_p
_capsule_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_valid.argtypes = (py_object, c_char_p)
_capsule_valid.restype = c_int

_DL_READ_ONLY = 1
_DL_HOST = (1, 3, 11)          # the CPU; memory pinned for CUDA, for ROCm
_DL_CUDA = (2, 13)             # a device; managed memory
_DL_FLOAT8 = {10: TYPES["fp8e4m3"], 12: TYPES["fp8e5m2"]}


def _dl_type(tensor: _DLTensor) -> Optional[Type]:
    size = tensor.bits // 8
    if tensor.lanes != 1 or tensor.bits % 8:
        return None
    if tensor.code == 0:
        return _SIGNED.get(size)
    if tensor.code == 1:
        return _UNSIGNED.get(size)
    if tensor.code == 2:
        return _FLOAT.get(size)
    if tensor.code == 4 and size == 2:
        return TYPES["bf16"]
    if tensor.code == 5:
        return _COMPLEX.get(size)
    if tensor.code == 6 and size == 1:
        return _BOOL
    return _DL_FLOAT8.get(tensor.code) if size == 1 else None


def _dl_capsule(x: Any) -> Any:
    """The capsule, with version 1 where the other side has it. No stream is waited for."""
    on_device = False
    if hasattr(x, "__dlpack_device__"):
        on_device = x.__dlpack_device__()[0] in _DL_CUDA
    given = {"stream": -1} if on_device else {}
    try:
        return x.__dlpack__(max_version=(1, 0), **given)
    except TypeError:              # it knows no versions
        return x.__dlpack__(**given)


def _dl_contiguous(tensor: _DLTensor) -> bool:
    if not tensor.strides or 0 in tensor.shape[:tensor.ndim]:
        return True
    expected = 1
    for i in reversed(range(tensor.ndim)):
        if tensor.shape[i] > 1 and tensor.strides[i] != expected:
            return False
        expected *= tensor.shape[i]
    return True


def _by_dlpack(x: Any) -> Buffer:
    try:
        capsule = _dl_capsule(x)
    except (BufferError, RuntimeError, ValueError) as error:
        raise InvalidError(f"{type(x).__name__} gives no DLPack buffer: {error}") from error
    readonly = type(x).__module__.partition(".")[0] in ("jax", "jaxlib")   # immutable
    if _capsule_valid(capsule, b"dltensor_versioned"):
        versioned = _DLVersioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        tensor = versioned.tensor
        readonly = readonly or bool(versioned.flags & _DL_READ_ONLY)
    else:
        tensor = _DLManaged.from_address(_capsule_pointer(capsule, b"dltensor")).tensor
    if not _dl_contiguous(tensor):
        raise InvalidError("the tensor is not contiguous; pass x.contiguous() or a copy")
    if tensor.device_type not in _DL_HOST + _DL_CUDA:
        raise InvalidError(f"the tensor is on a device of DLPack's kind {tensor.device_type}; "
                           "calls take host and CUDA memory")
    elements = 1
    for i in range(tensor.ndim):
        elements *= tensor.shape[i]
    nbytes = elements * tensor.bits * tensor.lanes // 8
    address = (tensor.data or 0) + tensor.byte_offset if nbytes else 0
    device = "cuda" if tensor.device_type in _DL_CUDA else "cpu"
    return Buffer(address, nbytes, _dl_type(tensor), readonly, x, (x, capsule), device)


# ---- dictionaries ----


def _by_interface(x: Any, interface: Dict[str, Any], device: str) -> Buffer:
    """__cuda_array_interface__ and __array_interface__ are alike."""
    shape, typestr = interface["shape"], interface["typestr"]
    size = int(typestr[2:])
    elements = 1
    for length in shape:
        elements *= length
    strides = interface.get("strides")
    if strides is not None and elements:
        expected = size
        for length, stride in zip(reversed(shape), reversed(strides)):
            if length > 1 and stride != expected:
                raise InvalidError("the array is not contiguous; pass a contiguous copy of it")
            expected *= length
    kinds = {"i": _SIGNED, "u": _UNSIGNED, "f": _FLOAT, "c": _COMPLEX, "b": {1: _BOOL}}
    kind = None
    if typestr[0] in "<|=" or size == 1:
        kind = kinds.get(typestr[1], {}).get(size)
    if kind is None:
        kind = _NAMES.get(str(getattr(getattr(x, "dtype", None), "name", "")))
    address, readonly = interface["data"]
    return Buffer(address or 0, elements * size, kind, readonly, x, x, device)


# ---- the fastest way, for what is passed most ----

_CODES = {letter: c_int(_KINDS[letter][array.array(letter).itemsize].code)
          for letter in "bBhHiIlLqQfd"}


def _of_array(x: Any) -> Tuple[Any, int]:
    return _CODES[x.typecode], len(x)


def _of_numpy(x: Any) -> Tuple[Any, int]:
    return _CODES[x.dtype.char if x.dtype.isnative else ""], x.size


# By class: the type and the number of elements.
_quick: Dict[type, Any] = {array.array: _of_array}


def quick(x: Any) -> Tuple[Any, ...]:
    """Arguments of a call in place on x, as Buffer.prepared() has them; (): look it up."""
    count = _quick.get(x.__class__)
    if count is None:
        return ()
    try:
        code, n = count(x)
        at = byref(_from_buffer(x))    # refuses what is not contiguous, read-only or empty
    except (KeyError, TypeError, ValueError, BufferError):
        return ()
    return (at, at, c_uint64(n), code)


# ---- all of them ----


def _view(x: Any) -> Optional[memoryview]:
    try:
        return memoryview(x)
    except (TypeError, ValueError, BufferError):
        return None


def lookup(x: Any) -> Buffer:
    """The memory of any object that has some."""
    if isinstance(x, Buffer):
        return x
    view = _view(x)
    if view is not None:
        return _by_buffer(x, view)
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array_interface__"):
        return _by_dlpack(x)
    for name, device in (("__cuda_array_interface__", "cuda"), ("__array_interface__", "cpu")):
        interface = getattr(x, name, None)
        if interface is not None:
            return _by_interface(x, interface, device)
    if hasattr(x, "__dlpack__"):
        return _by_dlpack(x)
    raise TypeError(f"{type(x).__name__} has no memory that can be shared: pass an object with "
                    "the buffer protocol (bytearray, array.array, NumPy), __dlpack__ (torch, "
                    "CuPy, JAX) or __cuda_array_interface__")


def buffer(x: Any, type: Any = None) -> Buffer:
    """A Buffer of x, to be passed to calls many times. type= reads its bytes as that type."""
    found = lookup(x)
    if type is None:
        return found
    kind = type_named(type)
    if found.nbytes % kind.size:
        raise InvalidError(f"{found.nbytes} bytes are not a whole number of {kind.name}")
    return Buffer(found.address, found.nbytes, kind, found.readonly, found.owner, found,
                  found.device)


# ---- new ones ----


def like(x: Any, shape_of: "Any", numerator: int, denominator: int = 1) -> Any:
    """A new object of the kind of x, with numerator / denominator times its elements.

    shape_of(shape) gives the new shape of one that has a shape.
    """
    if isinstance(x, Buffer):
        x = x.owner
    if isinstance(x, array.array):
        return array.array(x.typecode, bytes(len(x) * numerator // denominator * x.itemsize))
    if isinstance(x, (bytes, bytearray)):
        return bytearray(len(x) * numerator // denominator)
    shape = getattr(x, "shape", None)
    if shape is not None and not isinstance(x, memoryview):
        shape = shape_of(tuple(shape))
        if hasattr(x, "new_empty"):                       # torch
            return x.new_empty(shape)
        module = type(x).__module__.partition(".")[0]
        if module in ("numpy", "cupy"):
            return __import__(module).empty(shape, dtype=x.dtype)
    raise InvalidError(f"pass out=: a new {type(x).__name__} for the result cannot be made here")
