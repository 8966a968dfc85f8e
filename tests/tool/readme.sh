#!/bin/sh
# SPDX-License-Identifier: MIT
# The README's program compiles with the compiler alone, is at most 50 lines, and prints what the README says.
# shellcheck source=/dev/null
. "${abs_top_srcdir:?}/tests/tool/lib.sh"

plan 3
cd "$work" || exit 1
sed -n '/^```c$/,/^```$/p' "$abs_top_srcdir/README.md" | sed '1d;$d' >saxpy.c
expected=$(sed -n 's/^\(y\[999999\] = .*\)/\1/p' "$abs_top_srcdir/README.md")
library=${abs_top_builddir:?}/.libs

ok "the program is in the README and short" test "$(wc -l <saxpy.c)" -gt 30 -a "$(wc -l <saxpy.c)" -le 50
# shellcheck disable=SC2086 # lists of words
ok "it compiles without a warning" ${CC:-cc} $CHECK_SANITIZER -std=gnu11 -Wall -Wextra -Werror -I"$abs_top_srcdir/include" saxpy.c \
    -L"$library" -lhdrt -Wl,-rpath,"$library" -o saxpy
if have_clang; then
    ok "it prints what the README says" test "$(HDRT_DRIVER=soft ./saxpy)" = "$expected"
else
    skip "it prints what the README says" "no clang"
fi
