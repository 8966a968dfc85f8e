#!/bin/sh
# SPDX-License-Identifier: MIT
# An installed tree works after it was moved, by its own companions, and uninstalling leaves nothing.
# shellcheck source=/dev/null
. "${abs_top_srcdir:?}/tests/tool/lib.sh"

plan 5
unset HDRT_LIBEXEC MAKEFLAGS MAKELEVEL MFLAGS
cd "${abs_top_builddir:?}" || exit 1
ok "make install" sh -c "make -s install DESTDIR='$work/stage' >'$work/install.log' 2>&1"
prefix=$(find "$work/stage" -path '*/bin/hdjit' | sed 's,/bin/hdjit$,,')
cp -R "$prefix" "$work/elsewhere"

ok "make uninstall" sh -c "make -s uninstall DESTDIR='$work/stage' >'$work/uninstall.log' 2>&1"
is "uninstalling leaves no file" "$(find "$work/stage" -type f -o -type l | head -5)" ""

cd "$work" || exit 1
LD_LIBRARY_PATH=$(dirname "$(find "$work/elsewhere" -name 'libhdrt.so.0' | head -1)")
export LD_LIBRARY_PATH
like "companions are found beside the moved library" "$(./elsewhere/bin/hdjit info --driver=soft 2>&1)" "$work/elsewhere"
if have_clang; then
    head -c 100000 "$abs_top_srcdir/README.md" >text
    LC_ALL=C tr "a-z" "A-Z" <text >expected
    kernel=$(find elsewhere -name upper.cu)
    ./elsewhere/bin/hdjit pipe --driver=soft "$kernel" upper <text >result 2>errors
    ok "hdjit pipe of the moved tree is right" cmp result expected
else
    skip "hdjit pipe of the moved tree is right" "no clang"
fi
