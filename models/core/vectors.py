"""LLVM code for short vectors of numbers that stay in registers: what the networks' forward passes are written in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core.cpu import CPUContext

WORD, REAL = ir.IntType(64), ir.FloatType()


def emit_vector(builder: ir.IRBuilder, address: Any, number: Any, kind: ir.VectorType) -> Any:
    """Vector *number* of an array of vectors at *address*; they need not be aligned to their length."""
    pointer = builder.gep(builder.inttoptr(address, ir.PointerType(kind)), [number])
    return builder.load(pointer, align=1 if isinstance(kind.element, ir.IntType) else 4)


def emit_sum(vectors: list[Any], add: Callable[[Any, Any], Any]) -> Any:
    """The vectors added up in pairs, then the sums in pairs …: no addition waits for all that were before it."""
    while len(vectors) > 1:
        pairs = [add(*vectors[k : k + 2]) for k in range(0, len(vectors) - 1, 2)]
        vectors = pairs + vectors[2 * len(pairs) :]
    return vectors[0]


def fuses(context: Any) -> bool:
    """Whether code is made for a CPU that multiplies and adds in one instruction: all but x86's before 2013."""
    if not isinstance(context, CPUContext):
        return False
    triple, _, features = context.codegen().magic_tuple()
    return not triple.startswith(("x86", "i686")) or "+fma" in features.split(",")


def emit_product_added(context: Any, builder: ir.IRBuilder, total: Any, left: Any, right: Any) -> Any:
    """*total* + *left* * *right*, rounded once where the CPU can do so in one instruction.

    That is said, not left to the compiler: it might choose differently on another CPU, and values would differ in a last bit.
    """
    if not fuses(context):
        return builder.fadd(total, builder.fmul(left, right))
    kind = ir.FunctionType(total.type, [total.type] * 3)
    fused = builder.module.declare_intrinsic(f"llvm.fma.v{total.type.count}f32", (), kind)
    return builder.call(fused, [left, right, total])


def emit_limited(builder: ir.IRBuilder, vector: Any, least: int, most: int) -> Any:
    """Every whole number of the vector, but at least *least* and at most *most*."""
    for bound, beyond in ((least, "<"), (most, ">")):
        bounds = ir.Constant(vector.type, [bound] * vector.type.count)
        vector = builder.select(builder.icmp_signed(beyond, vector, bounds), bounds, vector)
    return vector


def emit_clipped(builder: ir.IRBuilder, vector: Any) -> Any:
    """Every number of the vector, but at least 0 and at most 1."""
    return emit_at_most(builder, emit_at_least(builder, vector, 0.0), 1.0)


def emit_at_least(builder: ir.IRBuilder, vector: Any, bound: float) -> Any:
    """Every number of the vector, but at least *bound*."""
    bounds = ir.Constant(vector.type, [bound] * vector.type.count)
    return builder.select(builder.fcmp_ordered("<", vector, bounds), bounds, vector)


def emit_at_most(builder: ir.IRBuilder, vector: Any, bound: float) -> Any:
    """Every number of the vector, but at most *bound*."""
    bounds = ir.Constant(vector.type, [bound] * vector.type.count)
    return builder.select(builder.fcmp_ordered(">", vector, bounds), bounds, vector)


def emit_total(builder: ir.IRBuilder, vector: Any) -> Any:
    """Sum of the vector's numbers, halves added to halves."""
    width = vector.type.count
    while width > 1:
        width //= 2
        parts = [emit_chosen(builder, vector, range(start, start + width)) for start in (0, width)]
        vector = builder.fadd(*parts)
    return builder.extract_element(vector, ir.IntType(32)(0))


def emit_chosen(builder: ir.IRBuilder, vector: Any, places: Any) -> Any:
    """The vector of the numbers at *places*, which are known when the code is made and may repeat."""
    chosen = list(places)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(chosen)), chosen)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)
