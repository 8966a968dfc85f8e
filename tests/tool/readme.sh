#!/bin/sh
# SPDX-License-Identifier: MIT
# The README's program is short, compiles without a warning and prints what the README says.
# shellcheck source=tests/tool/lib.sh
. "${abs_top_srcdir:?run this by make check}/tests/tool/lib.sh"

sed -n '/^```c$/,/^```$/p' "$top/README.md" | sed '1d;$d' >saxpy.c
sed -n 's/^y\[999999\] = .*/&/p' "$top/README.md" >promised
library=$abs_top_builddir/.libs

[ "$(wc -l <saxpy.c)" -gt 30 ] && [ "$(wc -l <saxpy.c)" -le 50 ]
result $? "the README has a program of at most 50 lines"
# shellcheck disable=SC2086 # CC and CFLAGS are lists of words
expect 0 '' "it compiles" ${CC:-cc} ${HDRT_TEST_CFLAGS:-} -std=gnu11 -Wall -Wextra -Werror -I"$top/include" saxpy.c \
    -L"$library" -lhdrt -Wl,-rpath,"$library" -o saxpy
if have_compiler clang; then
    expect 0 '' "it runs" ./saxpy
    same out promised "it prints what the README says"
else
    skip "it runs and prints what the README says" "no clang"
fi
finish
