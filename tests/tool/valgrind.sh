#!/bin/sh
# SPDX-License-Identifier: MIT
# Unit tests under valgrind, those that it finishes in seconds: `make check-valgrind`. One process each, without Check's
# forks, but those of the soft driver, whose tests each want a driver of their own.
set -u
command -v valgrind >/dev/null 2>&1 || { echo "1..0 # SKIP no valgrind"; exit 0; }
CK_DEFAULT_TIMEOUT=600
CK_FORK=no
export CK_FORK CK_DEFAULT_TIMEOUT
number=0
for test in test_base test_timeline test_device test_jit_table test_jit_key test_jit_store test_jit_image test_jit_manifest \
    test_soft_ptx test_soft_inject test_soft_excluded; do
    number=$((number + 1))
    program=${abs_top_builddir:?run this by make}/tests/unit/.libs/$test
    CK_FORK=no
    case $test in test_soft_inject | test_soft_excluded) CK_FORK=yes ;; esac
    [ -x "$program" ] || program=$abs_top_builddir/tests/unit/$test
    if valgrind --quiet --error-exitcode=99 --leak-check=no "$program" >valgrind.out 2>&1 &&
        ! grep -q '^not ok' valgrind.out; then
        echo "ok $number - $test: $(grep -c '^ok' valgrind.out) checks"
    else
        echo "not ok $number - $test"
        grep -E '^(==|not ok)' valgrind.out | head -n 40 | sed 's/^/# /'
    fi
done
rm -f valgrind.out
echo "1..$number"
