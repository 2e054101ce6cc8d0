"""Vector instructions for compiled loops, and sums in the same order on every processor.

A compiler that may choose the order of a sum takes one that suits the processor's vectors. Here the
order is written down: number j is added to lane j mod 8, products are rounded before they are
added, and at the end the upper half of the lanes is added to the lower half until one is left. The
compiler maps the lanes to whatever vectors there are, which changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic as numba_intrinsic
from numba.extending import models, register_model

LANES = 8
INT32 = ir.IntType(32)


# Numba's decorator; its hints are those of the function that compiles
intrinsic: Callable[..., Any] = numba_intrinsic


class Lanes(types.Type):
    """The type of eight floats, float32 or float64, in compiled code."""

    def __init__(self, dtype):
        self.dtype = dtype
        single = dtype is types.float32
        self.vector = ir.VectorType(ir.FloatType() if single else ir.DoubleType(), LANES)
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, lanes.vector)


@intrinsic
def zeros(typing, array):
    """Lanes of the array's type, all 0."""
    lanes = Lanes(array.dtype)
    return lanes(array), lambda *_: ir.Constant(lanes.vector, None)


@intrinsic
def filled(typing, value):
    """Lanes that are all ``value``."""
    lanes = Lanes(value)

    def generate(context, builder, signature, arguments):
        nothing = ir.Constant(lanes.vector, ir.Undefined)
        one = builder.insert_element(nothing, arguments[0], INT32(0))
        return builder.shuffle_vector(one, nothing, _numbers([0] * LANES))

    return lanes(value), generate


@intrinsic
def load(typing, array, start):
    """Eight numbers from flat index ``start`` on; the index is not checked."""
    lanes = _lanes_of(array)

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, array, *arguments)
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return lanes(array, types.intp), generate


@intrinsic
def store(typing, array, start, lanes):
    """Write lanes to where `load` reads them."""
    _lanes_of(array)

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, array, *arguments[:2])
        builder.store(arguments[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@intrinsic
def add(typing, total, lanes):
    """total + lanes."""
    return total(total, lanes), lambda _, builder, __, both: builder.fadd(*both)


@intrinsic
def add_products(typing, total, a, b):
    """total + a b."""

    def generate(context, builder, signature, arguments):
        return builder.fadd(arguments[0], builder.fmul(*arguments[1:]))

    return total(total, a, b), generate


@intrinsic
def reduce(typing, lanes):
    """The sum of all lanes."""

    def generate(context, builder, signature, arguments):
        (vector,), count = arguments, LANES
        while count > 1:
            count //= 2
            nothing = ir.Constant(vector.type, ir.Undefined)
            lower = builder.shuffle_vector(vector, nothing, _numbers(range(count)))
            upper = builder.shuffle_vector(vector, nothing, _numbers(range(count, 2 * count)))
            vector = builder.fadd(lower, upper)
        return builder.extract_element(vector, INT32(0))

    return lanes.dtype(lanes), generate


def _lanes_of(array) -> Lanes:
    if array.layout != "C":
        raise TypingError(f"lanes need a contiguous array, not {array}")
    return Lanes(array.dtype)


def _place(context, builder, array, value, start):
    data = cgutils.create_struct_proxy(array)(context, builder, value).data
    return builder.bitcast(builder.gep(data, [start]), Lanes(array.dtype).vector.as_pointer())


def _numbers(numbers):
    return ir.Constant(ir.VectorType(INT32, len(numbers)), list(numbers))


@njit(cache=True)
def dot(a, b):
    """a . b of two contiguous vectors of one type; what fills no lanes is added up on its own."""
    in_lanes = a.size & -LANES
    rest = a.dtype.type(0)
    for j in range(in_lanes, a.size):
        rest += a[j] * b[j]
    lanes = zeros(a)
    for j in range(0, in_lanes, LANES):
        lanes = add_products(lanes, load(a, j), load(b, j))
    return reduce(lanes) + rest


@njit(cache=True)
def sum_of(v, n):
    """The sum of the first n numbers of a contiguous vector."""
    in_lanes = n & -LANES
    rest = v.dtype.type(0)
    for j in range(in_lanes, n):
        rest += v[j]
    lanes = zeros(v)
    for j in range(0, in_lanes, LANES):
        lanes = add(lanes, load(v, j))
    return reduce(lanes) + rest


PAGE, LINE = 4096, 64  # bytes
BYTE, INT32, INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
READ, KEEP, DATA = INT32(0), INT32(3), INT32(1)


@intrinsic
def magnitude(typing, value):
    """|value| as an integer, float32 as int32 and float64 as int64.

    The bits of absolute values have the order of the numbers, and NaN is above all of them.
    """
    bits = value.bitwidth
    key = types.int32 if bits == 32 else types.int64

    def generate(context, builder, signature, arguments):
        kind = ir.IntType(bits)
        return builder.and_(builder.bitcast(arguments[0], kind), kind(2 ** (bits - 1) - 1))

    return key(value), generate


@njit(inline="always")
def fetch_ahead(array, start, count):
    """`fetch` what lies a page after flat index ``start``.

    The processor fetches ahead by itself, but not from the next page.
    """
    fetch(array, start + PAGE // array.itemsize, count)


@intrinsic
def fetch(typing, array, start, count):
    """Ask for ``count`` (a constant) numbers from flat index ``start`` on, which are used soon.

    The processor may also be asked for what lies after the array. ``array`` is contiguous.
    """
    if not isinstance(count, types.IntegerLiteral) or array.layout != "C":
        raise TypingError(f"not a constant, or not contiguous: {count}, {array}")
    size = array.dtype.bitwidth // 8
    lines = range(0, count.literal_value * size, LINE)

    def generate(context, builder, signature, arguments):
        data = cgutils.create_struct_proxy(array)(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), BYTE.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT32, INT32, INT32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [BYTE.as_pointer()], kind)
        for line in lines:
            builder.call(prefetch, [builder.gep(place, [INT64(line)]), READ, KEEP, DATA])
        return context.get_dummy_value()

    return types.void(array, types.intp, count), generate
