/* SPDX-License-Identifier: MIT */
/* What the lanes of a warp do together. A row's answer is all 32 lanes. */
#include "areas.h"
#include "instructions.h"

#define ALL "0xffffffff"
#define SQUARE "mul.lo.u32 %r4, %lane, %lane; "
#define WITH_PREDICATE "selp.u32 %r6, 0x100, 0, %p0; or.b32 %r0, %r5, %r6;"

static const check checks[] = {
    WARP("laneid", "mov.u32 %r0, %laneid;"),
    WARP("lanemask_eq", "mov.u32 %r0, %lanemask_eq;"),
    WARP("lanemask_lt", "mov.u32 %r0, %lanemask_lt;"),
    WARP("lanemask_le", "mov.u32 %r0, %lanemask_le;"),
    WARP("lanemask_gt", "mov.u32 %r0, %lanemask_gt;"),
    WARP("lanemask_ge", "mov.u32 %r0, %lanemask_ge;"),
    WARP("warpid", "mov.u32 %r0, WARP_SZ;"),
    /* shuffles: c is the segment's mask in its high half and the clamp in its low one */
    WARP("shfl.idx", "xor.b32 %r4, %lane, 5; shfl.sync.idx.b32 %r5|%p0, %lane, %r4, 0x1f, " ALL "; " WITH_PREDICATE),
    WARP("shfl.idx broadcast", SQUARE "shfl.sync.idx.b32 %r5|%p0, %r4, 7, 0x1f, " ALL "; " WITH_PREDICATE),
    WARP("shfl.idx beyond",
        "add.u32 %r4, %lane, 16; shfl.sync.idx.b32 %r5|%p0, %lane, %r4, 0x1f, " ALL "; " WITH_PREDICATE),
    WARP("shfl.idx segments of 8", "shfl.sync.idx.b32 %r5|%p0, %lane, 3, 0x181f, " ALL "; " WITH_PREDICATE),
    WARP("shfl.idx segments of 8, beyond",
        "add.u32 %r4, %lane, 3; shfl.sync.idx.b32 %r5|%p0, %lane, %r4, 0x181f, " ALL "; " WITH_PREDICATE),
    WARP("shfl.up", "shfl.sync.up.b32 %r5|%p0, %lane, 3, 0, " ALL "; " WITH_PREDICATE),
    WARP("shfl.up segments of 8", "shfl.sync.up.b32 %r5|%p0, %lane, 3, 0x1800, " ALL "; " WITH_PREDICATE),
    WARP("shfl.down", "shfl.sync.down.b32 %r5|%p0, %lane, 3, 0x1f, " ALL "; " WITH_PREDICATE),
    WARP("shfl.down segments of 16", "shfl.sync.down.b32 %r5|%p0, %lane, 5, 0x101f, " ALL "; " WITH_PREDICATE),
    WARP("shfl.bfly", "shfl.sync.bfly.b32 %r5|%p0, %lane, 9, 0x1f, " ALL "; " WITH_PREDICATE),
    WARP("shfl.bfly segments of 4", "shfl.sync.bfly.b32 %r5|%p0, %lane, 6, 0x1c1f, " ALL "; " WITH_PREDICATE),
    WARP("shfl.up clamp", "shfl.sync.up.b32 %r5|%p0, %lane, 4, 6, " ALL "; " WITH_PREDICATE),
    WARP("shfl by lanes of their own",
        "shr.u32 %r4, %lane, 1; shfl.sync.idx.b32 %r5|%p0, %lane, %r4, 0x1f, " ALL "; " WITH_PREDICATE),
    WARP("shfl partial mask",
        "mov.u32 %r0, 77; setp.lt.u32 %p1, %lane, 16;\n@!%p1 bra DONE;\n"
        "shfl.sync.bfly.b32 %r0|%p0, %lane, 1, 0x1f, 0xffff;\nDONE:"),
    WARP("shfl two halves apart",
        "setp.lt.u32 %p1, %lane, 16;\n@!%p1 bra UPPER;\nshfl.sync.idx.b32 %r0|%p0, %lane, 2, 0x1f, 0xffff;\n"
        "bra DONE;\nUPPER:\nshfl.sync.idx.b32 %r0|%p0, %lane, 20, 0x1f, 0xffff0000;\nDONE:"),
    /* votes */
    WARP("vote.any", "setp.eq.u32 %p0, %lane, 9; vote.sync.any.pred %p1, %p0, " ALL "; selp.u32 %r0, 1, 0, %p1;"),
    WARP("vote.all", "setp.ne.u32 %p0, %lane, 9; vote.sync.all.pred %p1, %p0, " ALL "; selp.u32 %r0, 1, 0, %p1;"),
    WARP("vote.all negated",
        "setp.eq.u32 %p0, %lane, 40; vote.sync.all.pred %p1, !%p0, " ALL "; selp.u32 %r0, 1, 0, %p1;"),
    WARP("vote.uni", "setp.lt.u32 %p0, %lane, 40; vote.sync.uni.pred %p1, %p0, " ALL "; selp.u32 %r0, 1, 0, %p1;"),
    WARP("vote.ballot", "and.b32 %r4, %lane, 3; setp.eq.u32 %p0, %r4, 1; vote.sync.ballot.b32 %r0, %p0, " ALL ";"),
    WARP("vote.ballot partial",
        "mov.u32 %r0, 0; setp.lt.u32 %p1, %lane, 8;\n@!%p1 bra DONE;\nsetp.ne.u32 %p0, %lane, 3; "
        "vote.sync.ballot.b32 %r0, %p0, 0xff;\nDONE:"),
    WARP("activemask", "activemask.b32 %r0;"),
    WARP("activemask in a branch",
        "mov.u32 %r0, 0; setp.lt.u32 %p1, %lane, 5;\n@!%p1 bra DONE;\nactivemask.b32 %r0;\nDONE:\nbar.warp.sync "
        ALL ";"),
    /* match */
    WARP("match.any", "shr.u32 %r4, %lane, 2; match.any.sync.b32 %r0, %r4, " ALL ";"),
    WARP("match.any.b64",
        "and.b32 %r4, %lane, 3; cvt.u64.u32 %d4, %r4; shl.b64 %d4, %d4, 40; match.any.sync.b64 %r0, %d4, " ALL ";"),
    WARP("match.all same", "match.all.sync.b32 %r0|%p0, 5, " ALL "; selp.u32 %r5, 1, 0, %p0; xor.b32 %r0, %r0, %r5;"),
    WARP("match.all different",
        "match.all.sync.b32 %r0|%p0, %lane, " ALL "; selp.u32 %r5, 1, 0, %p0; xor.b32 %r0, %r0, %r5;"),
    /* reductions */
    WARP("redux.add", "//sm_80\nredux.sync.add.s32 %r0, %lane, " ALL ";"),
    WARP("redux.min.s32", "//sm_80\nsub.s32 %r4, 7, %lane; redux.sync.min.s32 %r0, %r4, " ALL ";"),
    WARP("redux.max.u32", "//sm_80\nsub.u32 %r4, 7, %lane; redux.sync.max.u32 %r0, %r4, " ALL ";"),
    WARP("redux.and", "//sm_80\nor.b32 %r4, %lane, 0xf0; redux.sync.and.b32 %r0, %r4, " ALL ";"),
    WARP("redux.or", "//sm_80\nredux.sync.or.b32 %r0, %lane, " ALL ";"),
    WARP("redux.xor", "//sm_80\nadd.u32 %r4, %lane, 1; redux.sync.xor.b32 %r0, %r4, " ALL ";"),
    WARP("redux partial",
        "//sm_80\nmov.u32 %r0, 0; setp.lt.u32 %p1, %lane, 4;\n@!%p1 bra DONE;\nredux.sync.add.u32 %r0, %lane, 0xf;\n"
        "DONE:"),
    WARP("sum by shuffles",
        "mov.u32 %r0, %lane;\nshfl.sync.bfly.b32 %r4, %r0, 16, 0x1f, " ALL "; add.u32 %r0, %r0, %r4;\n"
        "shfl.sync.bfly.b32 %r4, %r0, 8, 0x1f, " ALL "; add.u32 %r0, %r0, %r4;\n"
        "shfl.sync.bfly.b32 %r4, %r0, 4, 0x1f, " ALL "; add.u32 %r0, %r0, %r4;\n"
        "shfl.sync.bfly.b32 %r4, %r0, 2, 0x1f, " ALL "; add.u32 %r0, %r0, %r4;\n"
        "shfl.sync.bfly.b32 %r4, %r0, 1, 0x1f, " ALL "; add.u32 %r0, %r0, %r4;"),
    WARP("bar.warp.sync in a branch",
        "mov.u32 %r0, 1; setp.lt.u32 %p1, %lane, 5;\n@!%p1 bra DONE;\nbar.warp.sync 0x1f; mov.u32 %r0, 2;\nDONE:"),
};

const area area_warp = {"warp", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
