#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the tests that can run on a real GPU there: tests/gpu.sh BUILD-FOLDER [TEST...]. Needs no make, libtool or Check on
# that machine when the build linked Check's static library (HACKING.md says how). Prints what each test program says
# that is not "ok", and a last line with the sum.
set -u
build=$(CDPATH='' cd "${1:?usage: tests/gpu.sh BUILD-FOLDER [TEST...]}" && pwd) || exit 2
shift
source=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
if [ $# -eq 0 ]; then
    set -- test_device test_timeline test_memory test_queue test_errors test_lifetimes test_template test_template_wide test_wide test_capture \
        test_graph test_graph_foreign test_graph_foreign_errors \
        test_kernels test_corpus test_prelude test_jit_module
    # These include headers of the prelude's, which NVRTC has not got.
    [ -z "${HDRT_TEST_PTX-}" ] && [ "${HDRT_TEST_COMPILER-}" != clang ] || set -- "$@" test_halves test_groups
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export HDRT_TEST_DRIVER=cuda HDRT_LIBEXEC="$build" HOME="$scratch" XDG_CACHE_HOME="$scratch/cache"
export LD_LIBRARY_PATH="$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export abs_top_builddir="$build" abs_top_srcdir="$source"
passed=0 failed=0 skipped=0
for test in "$@"; do
    program=$build/tests/unit/.libs/$test
    [ -x "$program" ] || program=$build/tests/unit/$test
    if [ ! -x "$program" ]; then
        echo "$test: not built"
        failed=$((failed + 1))
        continue
    fi
    "$program" >"$scratch/out" 2>"$scratch/errors"
    status=$?
    grep -E '^not ok|# SKIP' "$scratch/out" | sed "s/^/$test: /"
    ok=$(grep -cE '^ok' "$scratch/out") bad=$(grep -cE '^not ok' "$scratch/out") skip=$(grep -cE '^ok.*# SKIP|^1\.\.0 # SKIP' "$scratch/out")
    planned=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$scratch/out" | head -n 1)
    if [ $status -ne 0 ] || [ $((ok + bad)) -ne "${planned:-0}" ]; then
        echo "$test: ended with $status after $((ok + bad)) of ${planned:-no planned} checks"
        tail -n 5 "$scratch/errors"
        bad=$((bad + 1))
    fi
    echo "$test: $ok ok, $bad not ok, $skip skipped"
    ok_only=$((ok - $(grep -cE '^ok.*# SKIP' "$scratch/out")))
    passed=$((passed + ok_only)) failed=$((failed + bad)) skipped=$((skipped + skip))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
