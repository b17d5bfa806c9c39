"""LLVM code for short vectors in registers, of which the forward passes of the networks consist."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core.cpu import CPUContext

WORD, REAL = ir.IntType(64), ir.FloatType()
#: Prefixes of the names of ARM CPUs with dot products of bytes, a feature that LLVM does not list.
WITH_DOTPROD = "neoverse-", "cortex-a76", "cortex-a78", "cortex-x", "apple-m", "ampere1"


def emit_vector(builder: ir.IRBuilder, address: Any, number: Any, kind: ir.VectorType) -> Any:
    """Load vector *number* of an array of vectors at *address*; they need not be aligned to their length."""
    pointer = builder.gep(builder.inttoptr(address, ir.PointerType(kind)), [number])
    return builder.load(pointer, align=1 if isinstance(kind.element, ir.IntType) else 4)


def emit_sum(vectors: list[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Return the sum of the vectors, added as a balanced tree: no addition waits for all before it."""
    while len(vectors) > 1:
        pairs = [add(*vectors[k : k + 2]) for k in range(0, len(vectors) - 1, 2)]
        vectors = pairs + vectors[2 * len(pairs) :]
    return vectors[0]


def cpu_features(context: Any) -> set[str]:
    """Return LLVM's names of the features of the CPU that code is compiled for."""
    if not isinstance(context, CPUContext):
        return set()
    _, name, features = context.codegen().magic_tuple()
    return {*features.split(","), *(["+dotprod"] if name.startswith(WITH_DOTPROD) else [])}


def is_arm(context: Any) -> bool:
    """Return whether code is compiled for an ARM CPU."""
    return isinstance(context, CPUContext) and context.codegen().magic_tuple()[0].startswith(("aarch64", "arm"))


def fuses(context: Any) -> bool:
    """Return whether the CPU has fused multiply-add; only x86 CPUs from before 2013 lack it."""
    if not isinstance(context, CPUContext):
        return False
    triple, _, features = context.codegen().magic_tuple()
    return not triple.startswith(("x86", "i686")) or "+fma" in features.split(",")


def emit_multiply_add(context: Any, builder: ir.IRBuilder, total: Any, left: Any, right: Any) -> Any:
    """Return *total* + *left* * *right*, rounded once if the CPU has fused multiply-add.

    The choice is explicit, so that all compilers give the same last bit.
    """
    if not fuses(context):
        return builder.fadd(total, builder.fmul(left, right))
    kind = ir.FunctionType(total.type, [total.type] * 3)
    fused = builder.module.declare_intrinsic(f"llvm.fma.v{total.type.count}f32", (), kind)
    return builder.call(fused, [left, right, total])


def emit_dot_products_added(context: Any, builder: ir.IRBuilder, totals: Any, inputs: Any, weights: Any) -> Any:
    """Add four products of *inputs* (bytes 0 to 127) and *weights* (bytes -127 to 127) to each of eight *totals* (int32).

    Some CPUs have instructions for this. The result is the same on all CPUs.
    """
    features = cpu_features(context)
    if "+dotprod" in features:
        return _emit_dots_arm(builder, totals, inputs, weights)
    dots = _emit_dots_avx2 if "+avx2" in features else _emit_dots
    return builder.add(totals, dots(builder, inputs, weights))


def _emit_dots_arm(builder: ir.IRBuilder, totals: Any, inputs: Any, weights: Any) -> Any:
    four, byte = ir.VectorType(ir.IntType(32), 4), ir.VectorType(ir.IntType(8), 16)
    dots = _declared(builder, "llvm.aarch64.neon.sdot.v4i32.v16i8", ir.FunctionType(four, [four, byte, byte]))
    halves = [[emit_half(builder, vector, second) for vector in (totals, weights, inputs)] for second in (False, True)]
    return emit_concatenated(builder, *(builder.call(dots, half) for half in halves))


def _emit_dots_avx2(builder: ir.IRBuilder, inputs: Any, weights: Any) -> Any:
    """Return sums of four products: of two in 16 bits, which hold 2 * 127 * 127, and of two such sums in 32 bits."""
    byte, half, whole = (ir.VectorType(ir.IntType(256 // lanes), lanes) for lanes in (32, 16, 8))
    twos = _declared(builder, "llvm.x86.avx2.pmadd.ub.sw", ir.FunctionType(half, [byte, byte]))
    fours = _declared(builder, "llvm.x86.avx2.pmadd.wd", ir.FunctionType(whole, [half, half]))
    return builder.call(fours, [builder.call(twos, [inputs, weights]), ir.Constant(half, [1] * half.count)])


def _emit_dots(builder: ir.IRBuilder, inputs: Any, weights: Any) -> Any:
    sums = builder.mul(*(_emit_widened(builder, vector) for vector in (inputs, weights)))
    for widened in (False, True):
        sums = _emit_widened(builder, sums) if widened else sums
        sums = builder.add(*(emit_shuffle(builder, sums, range(first, sums.type.count, 2)) for first in (0, 1)))
    return sums


def _emit_widened(builder: ir.IRBuilder, vector: Any) -> Any:
    return builder.sext(vector, ir.VectorType(ir.IntType(2 * vector.type.element.width), vector.type.count))


def _declared(builder: ir.IRBuilder, name: str, kind: ir.FunctionType) -> Any:
    return builder.module.globals.get(name) or ir.Function(builder.module, kind, name)


def emit_half(builder: ir.IRBuilder, vector: Any, second: bool) -> Any:
    half = vector.type.count // 2
    return emit_shuffle(builder, vector, range(half * second, half * (1 + second)))


def emit_concatenated(builder: ir.IRBuilder, left: Any, right: Any) -> Any:
    places = list(range(2 * left.type.count))
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))


def emit_clipped(builder: ir.IRBuilder, vector: Any, maximum: float) -> Any:
    """Clip every number of the vector to the range from 0 to *maximum*."""
    return _emit_bounded(builder, emit_relu(builder, vector), ">", maximum)


def emit_relu(builder: ir.IRBuilder, vector: Any) -> Any:
    return _emit_bounded(builder, vector, "<", 0)


def _emit_bounded(builder: ir.IRBuilder, vector: Any, beyond: str, bound: float) -> Any:
    bounds = ir.Constant(vector.type, [bound] * vector.type.count)
    compare = builder.icmp_signed if isinstance(vector.type.element, ir.IntType) else builder.fcmp_ordered
    return builder.select(compare(beyond, vector, bounds), bounds, vector)


def emit_horizontal_sum(builder: ir.IRBuilder, vector: Any) -> Any:
    """Return the sum of the vector's numbers, halves added to halves."""
    width = vector.type.count
    while width > 1:
        width //= 2
        parts = [emit_shuffle(builder, vector, range(start, start + width)) for start in (0, width)]
        vector = builder.fadd(*parts)
    return builder.extract_element(vector, ir.IntType(32)(0))


def emit_shuffle(builder: ir.IRBuilder, vector: Any, places: Any) -> Any:
    """Return the vector of the numbers at *places*, which are constants and may repeat."""
    chosen = list(places)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(chosen)), chosen)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)
