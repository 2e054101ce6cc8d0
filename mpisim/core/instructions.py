"""Single instructions for compiled loops, for which Python has no operation."""

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError

from mpisim.core.lanes import intrinsic

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
    """`fetch` what lies a page behind flat index ``start``.

    The processor fetches ahead by itself, but not from the next page.
    """
    fetch(array, start + PAGE // array.itemsize, count)


@intrinsic
def fetch(typing, array, start, count):
    """Ask for ``count`` (a constant) numbers from flat index ``start`` on, which are used soon.

    The processor may also be asked for what lies behind the array. ``array`` is contiguous.
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
