# SPDX-License-Identifier: Apache-2.0
"""Buffers of all kinds, by protocol and without a copy."""

import array
import ctypes
import gc
import mmap
import unittest

from support import hocket, numpy
from hocket import _buffer


class Dl(ctypes.Structure):
    """DLManagedTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
                ("ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
new_capsule.restype = ctypes.py_object
_NAME = b"dltensor"


class Tensor:
    """What torch and others look like: memory that only DLPack tells of."""

    def __init__(self, values, code=2, bits=32, shape=None, strides=None, offset=0, device=1):
        self.memory = values
        self.shape = shape or (len(values),)
        n = len(self.shape)
        self._shape = (ctypes.c_int64 * n)(*self.shape)
        self._strides = (ctypes.c_int64 * n)(*strides) if strides else None
        at = ctypes.addressof(ctypes.c_char.from_buffer(values))
        self.raw = Dl(data=at, device_type=device, ndim=n, code=code, bits=bits, lanes=1,
                      shape=self._shape, byte_offset=offset)
        if self._strides:
            self.raw.strides = self._strides
        self.device = device

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, stream=None):
        return new_capsule(ctypes.addressof(self.raw), _NAME, None)


class Interface:
    """An object with __array_interface__ or __cuda_array_interface__."""

    def __init__(self, memory, typestr, shape, name="__array_interface__", readonly=False,
                 strides=None):
        self.memory = memory
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        setattr(self, name, {"data": (at, readonly), "typestr": typestr, "shape": shape,
                             "strides": strides, "version": 3})


class Kinds(unittest.TestCase):
    """What a look-up finds."""

    def setUp(self):
        self.g = hocket.group()

    def tearDown(self):
        self.g.close()

    def test_protocol(self):
        for x, name, count in ((bytearray(6), "uint8", 6), (array.array("d", [1]), "fp64", 1),
                               (memoryview(bytearray(8)).cast("i"), "int32", 2),
                               ((ctypes.c_int16 * 5)(), "int16", 5),
                               (mmap.mmap(-1, 16), "uint8", 16),
                               ((ctypes.c_float * 3 * 2)(), "fp32", 6)):
            b = _buffer.lookup(x)
            self.assertEqual((b.type.name, b.count, b.readonly, b.device),
                             (name, count, False, "cpu"))
            self.assertIs(self.g.allreduce(x), x)
        b = _buffer.lookup(b"constant")
        self.assertTrue(b.readonly)
        self.assertEqual(ctypes.string_at(b.address, 8), b"constant")
        self.assertEqual(_buffer.lookup(b"").nbytes, 0)
        self.g.allreduce(bytearray())

    def test_foreign_order(self):
        class Big(ctypes.BigEndianStructure):
            """Elements that are no number of ours."""
            _fields_ = [("a", ctypes.c_int32)]
        x = (Big * 2)()
        with self.assertRaises(hocket.InvalidError) as caught:
            self.g.allreduce(x)
        self.assertIn("pass type=", str(caught.exception))
        self.g.allreduce(x, type="int32")

    def test_resize_is_refused_meanwhile(self):
        x = array.array("f", [1.0] * 10)
        b = hocket.buffer(x)
        with self.assertRaises(BufferError):
            x.append(1)
        self.assertIs(self.g.allreduce(b), x)
        del b
        gc.collect()
        x.append(1)

    def test_reinterpreted(self):
        x = bytearray(8)
        b = hocket.buffer(x, type="bf16")
        self.assertEqual((b.type.name, b.count), ("bf16", 4))
        self.assertIs(self.g.allreduce(b), x)

    def test_dlpack(self):
        x = array.array("f", [1.0, 2.0, 3.0, 4.0])
        t = Tensor(x, shape=(2, 2), strides=(2, 1))
        self.assertIs(self.g.allreduce(t), t)
        part = Tensor(x, shape=(2,), offset=8)
        out = array.array("f", [0, 0])
        self.g.allreduce(part, out)
        self.assertEqual(list(out), [3.0, 4.0])
        for code, bits, name in ((0, 64, "int64"), (1, 8, "uint8"), (2, 16, "fp16"),
                                 (4, 16, "bf16"), (10, 8, "fp8e4m3"), (12, 8, "fp8e5m2")):
            b = _buffer.lookup(Tensor(bytearray(64), code, bits, shape=(4,)))
            self.assertEqual((b.type.name, b.count), (name, 4))
        b = _buffer.lookup(Tensor(bytearray(64), 5, 64, shape=(4,)))
        self.assertEqual((b.type.name, b.type.kind, b.nbytes), ("fp32", "complex", 32))
        self.assertEqual(_buffer.lookup(Tensor(bytearray(8), device=2, shape=(2,))).device, "cuda")
        for wrong, text in ((Tensor(x, shape=(2, 2), strides=(1, 2)), "not contiguous"),
                            (Tensor(x, device=4), "kind 4")):
            with self.assertRaises(hocket.InvalidError) as caught:
                self.g.allreduce(wrong)
            self.assertIn(text, str(caught.exception))

    def test_interfaces(self):
        x = array.array("f", [1.0, 2.0])
        a = Interface(x, "<f4", (2,))
        self.assertIs(self.g.allreduce(a), a)
        c = _buffer.lookup(Interface(x, "<f4", (2,), "__cuda_array_interface__"))
        self.assertEqual((c.device, c.count), ("cuda", 2))
        with self.assertRaises(hocket.InvalidError):
            self.g.allreduce(Interface(x, "<f4", (2,), readonly=True))
        with self.assertRaises(hocket.InvalidError):
            self.g.allreduce(Interface(x, "<f4", (1, 2), strides=(4, 8)))

    def test_complex(self):
        def work(g):
            x = array.array("f", [1, 2, 3, 4])
            t = Tensor(x, 5, 64, shape=(2,))
            g.allreduce(t)
            assert list(x) == [2, 4, 6, 8]
            try:
                g.allreduce(t, op="max")
            except hocket.InvalidError as error:
                assert "complex" in str(error)
            else:
                raise AssertionError("a maximum of complex numbers")
            out = array.array("f", [0] * 8)
            g.allgatherv(t, [2, 2], Tensor(out, 5, 64, shape=(4,)))
            assert list(out) == [2, 4, 6, 8] * 2
        hocket.threads(2, work, timeout=20)


@unittest.skipIf(numpy is None, "there is no NumPy")
class NumPy(unittest.TestCase):
    """Arrays."""

    def test_arrays(self):
        def work(g):
            x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
            assert g.allreduce(x) is x and (x == 2 * numpy.arange(12).reshape(3, 4)).all()
            assert g.allgather(x).shape == (2, 3, 4)
            assert g.reducescatter(numpy.ones((4, 3))).shape == (2, 3)
            assert g.reducescatter(numpy.ones((2, 3))).shape == (3,)
            for kind in ("int8", "uint16", "int64", "float16", "float64", "complex64"):
                y = numpy.ones(5, dtype=kind)
                g.allreduce(y)
                assert (y == 2).all(), kind
            flags = numpy.array([g.rank == 0, False])
            assert list(g.allreduce(flags, op="max")) == [True, False]
            for wrong in (x.T, x[:, 1]):
                try:
                    g.allreduce(wrong)
                except hocket.InvalidError as error:
                    assert "not contiguous" in str(error)
                else:
                    raise AssertionError("not contiguous")
            frozen = numpy.zeros(3)
            frozen.flags.writeable = False
            try:
                g.allreduce(frozen)
            except hocket.InvalidError as error:
                assert "read-only" in str(error)
            else:
                raise AssertionError("read-only")
            swapped = numpy.ones(3, dtype=">f4")
            try:
                g.allreduce(swapped)
            except hocket.InvalidError as error:
                assert "pass type=" in str(error)
            else:
                raise AssertionError("of another byte order")
            assert g.allreduce(numpy.zeros(0)).size == 0
            assert g.allreduce(numpy.array(3.0)) == 6
            shared = g.empty((2, 3), "float32")
            assert isinstance(shared, numpy.ndarray) and not shared.any()
            shared += 1
            g.allreduce(shared)
            assert (shared == 2).all()
        hocket.threads(2, work, timeout=20)

    def test_bf16(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("there is no ml_dtypes")

        def work(g):
            for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn):
                x = numpy.ones(5, dtype=kind)
                assert (g.allreduce(x).astype("f4") == 2).all(), kind
        hocket.threads(2, work, timeout=20)

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("there is no pandas")
        frame = pandas.DataFrame(hocket.sim("allreduce", fabric="dgx-h100:1",
                                            sizes=["1K", "1M"]))
        self.assertEqual(list(frame["size"]), [1024, 1 << 20])
        self.assertTrue((frame["time_us"] > 0).all())


if __name__ == "__main__":
    unittest.main()
