"""The few operations that numba cannot express well in Python: bit counts, and eight directions in SIMD lanes.

Each intrinsic has an equivalent in plain Python (``*_scalar``, ``*_by_shifts``, or functions such as ``int.bit_count``).
CPUs without wide vectors and GPUs compile these equivalents, and the tests compare with them. All other kernels exist once
for both targets, since numba compiles any `kernel` for the GPU when a GPU kernel calls it.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cpu import CPUContext
from numba.extending import intrinsic, register_jitable

from reversi_env.kernels.frame import AXIS_MASKS, AXIS_STEPS, INNER_COLUMNS, RAYS

I64 = ir.IntType(64)
I1 = ir.IntType(1)
FOUR_LANES = ir.VectorType(I64, 4)
TOP_SQUARE = 0x8000_0000_0000_0000


@intrinsic
def popcount(typing_context: Any, board: Any) -> Any:
    """Number of set bits, as int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.ctpop", [I64]), args)

    return types.int64(types.uint64), codegen


def _zero_counter(name: str) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        counter = builder.module.declare_intrinsic(name, [I64], ir.FunctionType(I64, [I64, I1]))
        return builder.call(counter, [args[0], ir.Constant(I1, 1)])

    return codegen


@intrinsic
def trailing_zeros(typing_context: Any, board: Any) -> Any:
    """Index of the lowest set bit, as int64. Undefined for an empty board."""
    return types.int64(types.uint64), _zero_counter("llvm.cttz")


@intrinsic
def leading_zeros(typing_context: Any, board: Any) -> Any:
    """Number of unset bits above the highest set one, as uint64. Undefined for an empty board."""
    return types.uint64(types.uint64), _zero_counter("llvm.ctlz")


@intrinsic
def rounded_product(typing_context: Any, a: Any, b: Any) -> Any:
    """The product of two float64, rounded before anything is added to it.

    A GPU compiler would fuse the two, and the sum would differ from the CPU's in its last bit.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not _is_gpu(context):
            return builder.fmul(*args)
        double = ir.DoubleType()
        product = ir.FunctionType(double, [double, double])
        return builder.call(builder.module.declare_intrinsic("llvm.nvvm.mul.rn.d", fnty=product), args)

    return types.float64(types.float64, types.float64), codegen


@register_jitable
def _run_up(start, inside, step):
    """The run of *inside* discs next to *start*, up to six long, towards higher squares."""
    twice = step + step
    run = inside & (start << step)
    run |= inside & (run << step)
    pairs = inside & (inside << step)
    run |= pairs & (run << twice)
    return run | (pairs & (run << twice))


@register_jitable
def _run_down(start, inside, step):
    twice = step + step
    run = inside & (start >> step)
    run |= inside & (run >> step)
    pairs = inside & (inside >> step)
    run |= pairs & (run >> twice)
    return run | (pairs & (run >> twice))


@register_jitable
def _axis_ends(own, inside, step):
    """Squares just behind a run of *inside* discs next to an *own* disc, along one axis."""
    return (_run_up(own, inside, step) << step) | (_run_down(own, inside, step) >> step)


@register_jitable
def _axis_closed(square, own, inside, step):
    """The run of *inside* discs next to *square* along one axis, as far as an *own* disc closes it."""
    up, down = _run_up(square, inside, step), _run_down(square, inside, step)
    closed = up if (up << step) & own else np.uint64(0)
    return closed | (down if (down >> step) & own else np.uint64(0))


def run_ends_scalar(own: np.uint64, opp: np.uint64) -> np.uint64:
    """Squares just behind an unbroken run of *opp* discs that starts next to an *own* disc, over all eight directions."""
    inner = opp & np.uint64(INNER_COLUMNS)
    ends = _axis_ends(own, inner, np.uint64(1)) | _axis_ends(own, opp, np.uint64(8))
    return ends | _axis_ends(own, inner, np.uint64(7)) | _axis_ends(own, inner, np.uint64(9))


def outflanked_by_shifts(sq: int, own: np.uint64, opp: np.uint64) -> np.uint64:
    """The *opp* discs between square *sq* and an *own* disc, without table and branches: fastest on a GPU."""
    square = np.uint64(1) << np.uint64(sq)
    inner = opp & np.uint64(INNER_COLUMNS)
    flipped = _axis_closed(square, own, inner, np.uint64(1)) | _axis_closed(square, own, opp, np.uint64(8))
    flipped |= _axis_closed(square, own, inner, np.uint64(7))
    return flipped | _axis_closed(square, own, inner, np.uint64(9))


def outflanked_scalar(sq: int, own: np.uint64, opp: np.uint64) -> np.uint64:
    """`outflanked_by_shifts` by rays from a table, for a CPU without wide vectors.

    Upwards, adding one to a ray whose other squares are all set carries through the run of *opp* discs to the first
    square behind it. Downwards, that square is the highest one without an *opp* disc.
    """
    one = np.uint64(1)
    flipped = np.uint64(0)
    for direction in range(4):
        ray = RAYS[sq, direction]
        closing = ((opp | ~ray) + one) & own & ray
        flipped |= (closing - np.uint64(closing != 0)) & ray
    for direction in range(4, 8):
        ray = RAYS[sq, direction]
        closing = (np.uint64(TOP_SQUARE) >> leading_zeros((ray & ~opp) | one)) & own & ray
        flipped |= ((~closing + one) << one) & ray
    return flipped


def _is_gpu(context: Any) -> bool:
    return not isinstance(context, CPUContext)


def _has_wide_vectors(context: Any) -> bool:
    """Whether four 64-bit lanes with a shift count each fit into one register of the target processor (AVX2)."""
    return not _is_gpu(context) and "+avx2" in _features(context)


def _counts_zeros_in_lanes(context: Any) -> bool:
    """Whether the leading zeros of four 64-bit lanes are counted by one instruction (AVX-512)."""
    return not _is_gpu(context) and {"+avx512cd", "+avx512vl"} <= _features(context)


def _is_arm(context: Any) -> bool:
    """Whether the code is for a 64-bit ARM processor, which reverses the bits of a word at once."""
    return not _is_gpu(context) and context.codegen().magic_tuple()[0].startswith(("aarch64", "arm64"))


def _features(context: Any) -> set[str]:
    return set(context.codegen().magic_tuple()[2].split(","))


class _Lanes:
    """Emits LLVM code on four 64-bit lanes, one per axis."""

    def __init__(self, builder: Any, opp: Any) -> None:
        self.builder = builder
        self.step, self.twice = _lanes(*AXIS_STEPS), _lanes(*(2 * AXIS_STEPS))
        self.inside = builder.and_(_broadcast(builder, opp), _lanes(*AXIS_MASKS))

    def run(self, start: Any, shift: Any) -> Any:
        """The run of inside discs next to *start*, up to six long, in the direction of *shift*."""
        both, either = self.builder.and_, self.builder.or_
        run = both(self.inside, shift(start, self.step))
        run = either(run, both(self.inside, shift(run, self.step)))
        pairs = both(self.inside, shift(self.inside, self.step))
        run = either(run, both(pairs, shift(run, self.twice)))
        return either(run, both(pairs, shift(run, self.twice)))


def emit_ends_by_lanes(builder: Any, own: Any, opp: Any) -> Any:
    """`run_ends`, four axes at a time."""
    lanes = _Lanes(builder, opp)
    own_lanes = _broadcast(builder, own)
    ends = [shift(lanes.run(own_lanes, shift), lanes.step) for shift in (builder.shl, builder.lshr)]
    return _or_of_lanes(builder, builder.or_(*ends))


def emit_ends_by_words(builder: Any, own: Any, opp: Any) -> Any:
    """`run_ends`, a direction at a time, where shifting costs nothing and a word is reversed at once.

    Along a row a carry runs through the discs; the other way, through those of the reversed boards.
    """
    reverse = builder.module.declare_intrinsic("llvm.bitreverse", [I64])
    inner = builder.and_(opp, I64(INNER_COLUMNS))
    mirrored = _carried(builder, *(builder.call(reverse, [board]) for board in (own, inner)))
    ends = builder.or_(_carried(builder, own, inner), builder.call(reverse, [mirrored]))
    for step, inside in ((8, opp), (7, inner), (9, inner)):
        for shift in (builder.shl, builder.lshr):
            run = builder.and_(inside, shift(own, I64(step)))
            run = builder.or_(run, builder.and_(inside, shift(run, I64(step))))
            pairs = builder.and_(inside, shift(inside, I64(step)))
            for _ in range(2):
                run = builder.or_(run, builder.and_(pairs, shift(run, I64(2 * step))))
            ends = builder.or_(ends, shift(run, I64(step)))
    return ends


def _carried(builder: Any, own: Any, inside: Any) -> Any:
    """The squares behind the runs of *inside* discs that follow an *own* one in their row."""
    starts = builder.and_(inside, builder.shl(own, I64(1)))
    return builder.and_(builder.add(inside, starts), builder.not_(inside))


@intrinsic
def run_ends(typing_context: Any, own: Any, opp: Any) -> Any:
    """`run_ends_scalar` by the fastest code for the CPU. Occupied squares may be among the result or not."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return emit_run_ends(context, builder, *args)

    return types.uint64(types.uint64, types.uint64), codegen


def emit_run_ends(context: Any, builder: Any, own: Any, opp: Any) -> Any:
    if _has_wide_vectors(context):
        return emit_ends_by_lanes(builder, own, opp)
    if _is_arm(context):
        return emit_ends_by_words(builder, own, opp)
    signature = types.uint64(types.uint64, types.uint64)
    return context.compile_internal(builder, run_ends_scalar, signature, (own, opp))


class _Rays:
    """Emits LLVM code on the rays from a square, four at a time: those towards higher squares, or those towards lower ones."""

    def __init__(self, builder: Any, own: Any, opp: Any) -> None:
        self.builder = builder
        self.boards = own, opp
        self.own, self.opp = _broadcast(builder, own), _broadcast(builder, opp)

    def upwards(self, sq: Any) -> Any:
        """`outflanked_scalar`'s first half: a carry runs through the opponent's discs to the first square behind them."""
        builder, rays = self.builder, self._rays(sq, 0)
        behind = builder.add(builder.or_(self.opp, builder.not_(rays)), _lanes(1))
        closing = builder.and_(behind, builder.and_(self.own, rays))
        lowered = builder.add(closing, builder.sext(builder.icmp_unsigned("!=", closing, _lanes(0)), FOUR_LANES))
        return builder.and_(lowered, rays)

    def downwards(self, sq: Any) -> Any:
        """`outflanked_scalar`'s second half: the first square behind the opponent's discs is the highest without one."""
        builder, rays = self.builder, self._rays(sq, 1)
        kind = ir.FunctionType(FOUR_LANES, [FOUR_LANES, I1])
        counter = builder.module.declare_intrinsic("llvm.ctlz.v4i64", (), kind)
        others = builder.or_(builder.and_(rays, builder.not_(self.opp)), _lanes(1))
        behind = builder.lshr(_lanes(TOP_SQUARE), builder.call(counter, [others, ir.Constant(I1, 1)]))
        closing = builder.and_(behind, builder.and_(self.own, rays))
        return builder.and_(builder.shl(builder.neg(closing), _lanes(1)), rays)

    def downwards_reversed(self, sq: Any) -> Any:
        """`downwards` as `upwards` on the boards with their last square first, for CPUs that reverse a word at once."""
        builder = self.builder
        reverse = builder.module.declare_intrinsic("llvm.bitreverse", [I64])
        mirrored = _Rays(builder, *(builder.call(reverse, [board]) for board in self.boards))
        return builder.call(reverse, [_or_of_lanes(builder, mirrored.upwards(builder.sub(I64(63), sq)))])

    def _rays(self, sq: Any, half: int) -> Any:
        pointer = self.builder.bitcast(_constant_rays(self.builder), ir.PointerType(FOUR_LANES))
        number = self.builder.add(self.builder.mul(sq, I64(2)), I64(half))
        return self.builder.load(self.builder.gep(pointer, [number]), align=32)


def _lanes(*values: int) -> ir.Constant:
    """Return four constants, or four times the same one."""
    return ir.Constant(FOUR_LANES, [ir.Constant(I64, int(value)) for value in values] * (4 // len(values)))


def _broadcast(builder: Any, board: Any) -> Any:
    lanes = builder.insert_element(ir.Constant(FOUR_LANES, ir.Undefined), board, ir.IntType(32)(0))
    return builder.shuffle_vector(lanes, lanes, ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4))


def _or_of_lanes(builder: Any, lanes: Any) -> Any:
    pair, number = ir.VectorType(ir.IntType(32), 2), ir.IntType(32)
    halves = [builder.shuffle_vector(lanes, lanes, ir.Constant(pair, places)) for places in ([0, 1], [2, 3])]
    both = builder.or_(*halves)
    return builder.or_(*(builder.extract_element(both, number(lane)) for lane in range(2)))


def _constant_rays(builder: Any) -> Any:
    """Return the global variable of `RAYS` in the module that is being built; the first call adds it."""
    name = ".reversi.rays"
    variable = builder.module.globals.get(name)
    if variable is None:
        values = ir.Constant(ir.ArrayType(I64, RAYS.size), [int(ray) for ray in RAYS.ravel()])
        variable = ir.GlobalVariable(builder.module, values.type, name)
        variable.initializer, variable.linkage, variable.align = values, "internal", 32
        variable.global_constant = variable.unnamed_addr = True
    return variable


def emit_by_counted_zeros(builder: Any, sq: Any, own: Any, opp: Any) -> Any:
    """`outflanked` where leading zeros are counted in lanes."""
    rays = _Rays(builder, own, opp)
    return _or_of_lanes(builder, builder.or_(rays.upwards(sq), rays.downwards(sq)))


def emit_by_reversal(builder: Any, sq: Any, own: Any, opp: Any) -> Any:
    """`outflanked` where a word is reversed at once."""
    rays = _Rays(builder, own, opp)
    return builder.or_(_or_of_lanes(builder, rays.upwards(sq)), rays.downwards_reversed(sq))


def emit_by_runs(builder: Any, sq: Any, own: Any, opp: Any) -> Any:
    """`outflanked` where each lane has its own shift count."""
    lanes = _Lanes(builder, opp)
    square_lanes, own_lanes = (_broadcast(builder, board) for board in (builder.shl(ir.Constant(I64, 1), sq), own))
    flipped = []
    for shift in (builder.shl, builder.lshr):
        run = lanes.run(square_lanes, shift)
        closed = builder.icmp_unsigned("!=", builder.and_(shift(run, lanes.step), own_lanes), _lanes(0))
        flipped.append(builder.select(closed, run, _lanes(0)))
    return _or_of_lanes(builder, builder.or_(*flipped))


@intrinsic
def outflanked(typing_context: Any, sq: Any, own: Any, opp: Any) -> Any:
    """`outflanked_scalar`, four directions at a time where the CPU has vectors for it: AVX-512, AVX2 or ARM's."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _counts_zeros_in_lanes(context):
            return emit_by_counted_zeros(builder, *args)
        if _is_arm(context):
            return emit_by_reversal(builder, *args)
        if _has_wide_vectors(context):
            return emit_by_runs(builder, *args)
        body = outflanked_by_shifts if _is_gpu(context) else outflanked_scalar
        return context.compile_internal(builder, body, signature, args)

    return types.uint64(types.int64, types.uint64, types.uint64), codegen
