# SPDX-License-Identifier: Apache-2.0
"""The primitive that all calls are, its handler in libhocket-xla.so, and how it is lowered.

JAX has public functions for calls of foreign functions, but none that keeps several of them in
order. Ranks must perform the same calls in the same order, so this is a primitive with an
ordered effect, for which a few names of jax._src are needed.
"""

from __future__ import annotations

import ctypes
import os
import re
from typing import Any, Sequence, Tuple

import jax
from jax.extend import core as extend
from jax.interpreters import batching

import hocket
from .. import _c, _library

try:
    from jax._src import core, dispatch, effects
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
except ImportError as problem:
    raise ImportError(f"hocket.jax does not know jax {jax.__version__}: {problem}; it was "
                      "tested with 0.6.2, 0.10.2 and 0.11.2") from None

TARGET = "hocket_call"

_COLL = {code: name for name, code in _c.COLL.items()}
_BLOCKS = ("REDUCESCATTER", "ALLTOALL")     # of these the first axis of x is that of the ranks


# ---- the handler ----


def _load() -> ctypes.CDLL:
    """libhocket-xla.so, which lies beside libhocket.so."""
    beside = os.path.dirname(_library.path())
    named = f"libhocket-xla.so.{_library.VERSION[0]}.{_library.VERSION[1]}"
    tried = [os.path.join(beside, file) for file in (named, "libhocket-xla.so")] if beside else []
    for file in [path for path in tried if os.path.exists(path)] + [named]:
        try:
            library = ctypes.CDLL(file)
        except OSError as error:
            why = error
            continue
        library.hk_xla_add.argtypes = (ctypes.c_void_p,)
        library.hk_xla_add.restype = ctypes.c_int64
        library.hk_xla_remove.argtypes = (ctypes.c_int64,)
        library.hk_xla_remove.restype = None
        return library
    raise ImportError(f"cannot load {named}, the handler of hocket.jax: {why}; it belongs beside "
                      f"{_library.path()}")


def _minor() -> int:
    """The minor version of XLA's interface, by the header that jaxlib has."""
    header = os.path.join(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    try:
        with open(header, encoding="utf-8") as file:
            found = dict(re.findall(r"^#define XLA_FFI_API_(M[A-Z]+) (\d+)$", file.read(), re.M))
        major, minor = int(found["MAJOR"]), int(found["MINOR"])
    except (OSError, KeyError) as problem:
        raise ImportError(f"the version of XLA's interface is not in {header}: {problem}") from None
    if major != 0 or minor < 1:
        raise ImportError(f"jaxlib has version {major}.{minor} of XLA's interface for foreign "
                          "functions; hocket.jax knows 0.1 and what is compatible with it")
    return minor


_lib = _load()
_lib.hk_xla_minor(_minor())
jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(_lib.hk_xla_call), platform="cpu")


def add(group: hocket.Group) -> int:
    """A name for a group that compiled programs may hold."""
    name = _lib.hk_xla_add(group._open())
    if name < 0:
        raise MemoryError("no memory for one more group")
    return name


def remove(name: int) -> None:
    """From now on programs that hold the name are refused."""
    _lib.hk_xla_remove(name)


# ---- the primitive ----


class CallEffect(effects.Effect):
    """Calls of Hocket are performed in the order of the program."""

    def __str__(self) -> str:
        return "hocket"


_effect = CallEffect()
for _set in (effects.ordered_effects, effects.lowerable_effects,
             effects.control_flow_allowed_effects):
    _set.add_type(CallEffect)

call_p = extend.Primitive("hocket_call")
call_p.def_impl(lambda *args, **params: dispatch.apply_primitive(call_p, *args, **params))


@call_p.def_effectful_abstract_eval
def _abstract(x: Any, *, shape: Tuple[int, ...], **_params: Any) -> Any:
    return core.ShapedArray(shape, x.dtype), {_effect}


def _lower(ctx: Any, x: Any, *, name: int, coll: int, op: int, root: int, to: int, source: int,
           shape: Tuple[int, ...], size: int) -> Sequence[Any]:
    del size
    token = ctx.tokens_in.get(_effect)
    rank_in = len(ctx.avals_in[0].shape)
    result_type = ir.RankedTensorType.get(shape, ir.RankedTensorType(x.type).element_type)
    numbers = [name, coll, op, root, to, source]
    made = mlir.custom_call(
        TARGET, result_types=[result_type, token.type], operands=[x, token],
        has_side_effect=True, api_version=4,
        operand_layouts=[range(rank_in - 1, -1, -1), ()],
        result_layouts=[range(len(shape) - 1, -1, -1), ()],
        backend_config={"call": ir.DenseI64ArrayAttr.get(numbers)})
    result, token = made.results
    ctx.set_tokens_out(ctx.tokens_in.update_tokens(mlir.TokenSet({_effect: token})))
    return [result]


mlir.register_lowering(call_p, _lower, platform="cpu")


def _batch(args: Any, axes: Any, *, coll: int, shape: Tuple[int, ...], size: int,
           **params: Any) -> Tuple[Any, int]:
    (x,), (axis,) = args, axes
    kind = _COLL[coll]
    # The axis of ranks stays the first.
    first = 1 if kind in _BLOCKS else 0
    x = jax.numpy.moveaxis(x, axis, first)
    extent = x.shape[first]
    at = {"ALLGATHER": 1, "ALLTOALL": 1}.get(kind, 0)
    shape = shape[:at] + (extent,) + shape[at:]
    return call_p.bind(x, coll=coll, shape=shape, size=size, **params), at


batching.primitive_batchers[call_p] = _batch
