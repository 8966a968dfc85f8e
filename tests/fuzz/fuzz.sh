#!/bin/sh
# SPDX-License-Identifier: MIT
# The PTX parser and the engine under libFuzzer for HDRT_FUZZ_SECONDS (30), from hand-written modules, with a dictionary
# of the instructions that the parser knows. What once broke it lies in tests/fuzz/inputs and runs first. Skipped
# where no clang has libFuzzer.
set -u
source=${abs_top_srcdir:?run this by make}
build=${abs_top_builddir:?run this by make}/tests/fuzz.build
seconds=${HDRT_FUZZ_SECONDS:-30}
mkdir -p "$build/corpus"
checks="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
flags="-std=gnu11 -D_GNU_SOURCE -g1 -fno-strict-aliasing -ffp-contract=off -DHDSOFT_LEVEL=base -I$source/lib $checks"

compiler=
printf 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d == 0 && n; }\n' >"$build/probe.c"
for candidate in ${HDRT_FUZZ_CLANG:-clang-19 clang clang-18 clang-17 clang-16 clang-15}; do
    if "$candidate" -fsanitize=fuzzer,address "$build/probe.c" -o "$build/probe" >/dev/null 2>&1; then
        compiler=$candidate
        break
    fi
done
[ -n "$compiler" ] || { echo "1..0 # SKIP no clang with libFuzzer (clang-19 and libclang-rt-19-dev have it)"; exit 0; }

# An object is built anew if its source or any header is newer. What the fuzzer is to explore is the parser and the
# machine, not the arithmetic of the handlers, which optimised and with coverage would take most of the time to build.
newest=$(find "$source/lib/soft" "$source/lib/driver" -name '*.h' -newer "$build/built" 2>/dev/null | head -n 1)
[ -e "$build/built" ] && [ -z "$newest" ] || rm -f "$build"/*.o
compile='object=$1/$(basename "$(dirname "$4")")_$(basename "$4" .c).o
case $4 in */handlers_*) level=-O0 ;; *) level="-O1 -fsanitize=fuzzer-no-link" ;; esac
[ "$object" -nt "$4" ] || $2 $3 $level -c "$4" -o "$object"'
cd "$source/lib/soft" || exit 1
find "$PWD/exec" "$PWD/ptx" "$PWD/model" "$PWD/check" "$PWD/api/outside.c" "$source/tests/fuzz" -name '*.c' | sort |
    xargs -n 1 -P 2 sh -c "$compile" compile "$build" "$compiler" "$flags" >"$build/log" 2>&1 && touch "$build/built"
# shellcheck disable=SC2086 # flags
if ! "$compiler" $flags -fsanitize=fuzzer "$build"/*.o -lm -o "$build/fuzz_ptx" >>"$build/log" 2>&1; then
    echo "not ok 1 - the fuzz target is built"
    head -n 30 "$build/log" | sed 's/^/# /'
    echo "1..1"
    exit 0
fi

# Instructions from the parser's own table, directives and the like by hand.
{
    sed -n 's/^    {\("[a-z0-9_.]*"\), hdsoft_decode.*/\1/p' "$source/lib/soft/ptx/decode.c"
    for word in .version .target .address_size .visible .extern .weak .entry .func .param .reg .pred .global .shared \
        .const .local .align .maxntid .reqntid .loc .file .branchtargets .callprototype .b8 .b16 .b32 .b64 .u8 .u16 \
        .u32 .u64 .s8 .s16 .s32 .s64 .f16 .f16x2 .bf16 .bf16x2 .f32 .f64 .v2 .v4 .rn .rz .rm .rp .ftz .sat .approx \
        .wide .hi .lo .sync .uni .cc .shared::cta .shared::cluster %tid.x %laneid %clock64 @%p1 '[%rd1+4]' 0f3F800000 \
        0d3FF0000000000000 sm_90; do
        echo "\"$word\""
    done
} >"$build/dictionary"
set -- -timeout=60 -malloc_limit_mb=256 -rss_limit_mb=2048 -verbosity=0
echo "1..2"
files=$(find "$source/tests/fuzz/seeds" "$source/tests/fuzz/inputs" -name '*.ptx' 2>/dev/null)
# shellcheck disable=SC2086 # a name each
if "$build/fuzz_ptx" "$@" $files >"$build/log" 2>&1; then
    echo "ok 1 - hand-written modules, and what once broke it"
else
    echo "not ok 1 - hand-written modules, and what once broke it"
    tail -n 40 "$build/log" | sed 's/^/# /'
fi
cd "$build" || exit 1 # where a crash leaves its input
if ./fuzz_ptx "$@" -max_len=4096 -max_total_time="$seconds" -dict=dictionary -print_final_stats=1 corpus \
    "$source/tests/fuzz/seeds" >log 2>&1; then
    echo "ok 2 - $(sed -n 's/^stat::number_of_executed_units: *//p' log) inputs in $seconds s"
else
    echo "not ok 2 - $seconds s of inputs (the last of them is kept in $build)"
    tail -n 60 log | sed 's/^/# /'
fi
