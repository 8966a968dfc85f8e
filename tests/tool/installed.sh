#!/bin/sh
# SPDX-License-Identifier: MIT
# Installing, moving what was installed, and uninstalling: a moved tree works by its own companions, and nothing stays.
# shellcheck source=tests/tool/lib.sh
. "${abs_top_srcdir:?run this by make check}/tests/tool/lib.sh"
unset HDRT_LIBEXEC MAKEFLAGS MAKELEVEL MFLAGS

expect 0 '*' "make install with DESTDIR" make -s -C "$abs_top_builddir" install DESTDIR="$scratch/stage"
installed=$(find stage -path '*/bin/hdjit')
cp -R "${installed%/bin/hdjit}" moved
expect 0 '*' "make uninstall" make -s -C "$abs_top_builddir" uninstall DESTDIR="$scratch/stage"
find stage -type f -o -type l >left
same left /dev/null "uninstalling leaves no file"

LD_LIBRARY_PATH=$(cd "$(dirname "$(find moved -name 'libhdrt.so.0')")" && pwd)
export LD_LIBRARY_PATH
expect 0 '*' "hdjit info of the moved tree" moved/bin/hdjit info
grep -q "$scratch/moved" out && ! grep -q "$scratch/stage\|$abs_top_builddir" out
result $? "its companions are found beside the moved library"
if have_compiler clang; then
    kernel=$(find moved -name upper.cu)
    LC_ALL=C tr "a-z" "A-Z" <"$top/README.md" >expected
    expect 0 '*' "hdjit pipe of the moved tree" moved/bin/hdjit pipe "$kernel" upper <"$top/README.md"
    same out expected "its result is right"
else
    skip "hdjit pipe of the moved tree" "no clang"
fi
finish
