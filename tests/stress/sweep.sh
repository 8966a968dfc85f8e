#!/bin/sh
# SPDX-License-Identifier: MIT
# Every driver call of every test fails once with every plausible code: no crash, no leak, no hang. `make check` sweeps
# the first place of each entry point in each program; `make check-sweep` all places. See tests/unit/support/sweep.c.
# One program alone: HDRT_SWEEP_PROGRAMS=test_queue. Most runs wait, so HDRT_SWEEP_JOBS programs run at once; on a
# machine with many processors HDRT_SWEEP_SHARDS processes share a program. To see what a line "bad test N, RULE" is
# about: HDRT_SWEEP=one HDRT_SWEEP_TEST=N HDSOFT_FAIL=RULE tests/unit/PROGRAM.
set -u
: "${abs_top_builddir:?run this by make}"
if [ "${1:-}" = --program ]; then # PROGRAM.SHARD
    HDRT_SWEEP_OUT=$abs_top_builddir/tests/sweep.$2
    HDRT_SWEEP_SHARD=${2##*.}/${HDRT_SWEEP_SHARDS:-1}
    export HDRT_SWEEP_OUT HDRT_SWEEP_SHARD
    rm -f "$HDRT_SWEEP_OUT"
    start=$(date +%s)
    "$abs_top_builddir/tests/unit/${2%.*}" >/dev/null 2>&1
    echo "took $(($(date +%s) - start))" >>"$HDRT_SWEEP_OUT"
    exit 0
fi

[ "${HDRT_TEST_DRIVER:-}" = cuda ] && { echo "1..0 # SKIP failures are injected on the soft driver only"; exit 0; }
programs=${HDRT_SWEEP_PROGRAMS:-test_errors test_errors_in_turn test_branches test_queue test_scheduler test_bell test_caller_streams test_ends test_graph
    test_graph_foreign test_graph_foreign_errors test_notify test_memory test_lifetimes test_capture test_device
    test_jit_module test_soft_api test_soft_capture test_soft_order test_soft_launch test_soft_inject test_soft_policy
    test_soft_checks test_soft_race}
HDRT_SWEEP=${HDRT_SWEEP:-some}
[ "$HDRT_SWEEP" = some ] || [ -n "${HDRT_SWEEP_PROGRAMS:-}" ] ||
    programs="$programs test_soft_virtual test_soft_excluded test_kernels test_race_upper"
ASAN_OPTIONS=${ASAN_OPTIONS:-}:exitcode=99
LSAN_OPTIONS=${LSAN_OPTIONS:-}:exitcode=99
UBSAN_OPTIONS=${UBSAN_OPTIONS:-}:exitcode=99
TSAN_OPTIONS=${TSAN_OPTIONS:-}:exitcode=99
export HDRT_SWEEP ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS
built=
for program in $programs; do
    [ -x "$abs_top_builddir/tests/unit/$program" ] && built="$built $program"
done
[ -n "$built" ] || { echo "1..0 # SKIP no tests are built (Check is missing)"; exit 0; }
for program in $built; do
    shard=0
    while [ $shard -lt "${HDRT_SWEEP_SHARDS:-1}" ]; do
        echo "$program.$shard"
        shard=$((shard + 1))
    done
done | xargs -n 1 -P "${HDRT_SWEEP_JOBS:-3}" sh "$0" --program
number=0
for program in $built; do
    number=$((number + 1))
    out="$abs_top_builddir/tests/sweep.$program"
    # The sums of all its shards; one that did not come to its end has said nothing.
    # shellcheck disable=SC2046 # five numbers
    set -- $(cat "$out".* | awk '/^done / { done++; places += $2; runs += $3; bad += $4 }
                                 /^took / { if ($2 > took) took = $2 }
                                 END { print done + 0, places + 0, runs + 0, bad + 0, took + 0 }')
    if [ "$1" -eq "${HDRT_SWEEP_SHARDS:-1}" ] && [ "$4" -eq 0 ]; then
        echo "ok $number - $program: $2 places, $3 runs, $5 s"
    else
        echo "not ok $number - $program: $4 bad of $3 runs, $1 of ${HDRT_SWEEP_SHARDS:-1} came to the end"
        cat "$out".* | grep -v '^done' | head -n 200 | sed 's/^/# /'
    fi
    rm -f "$out".*
done
echo "1..$number"
