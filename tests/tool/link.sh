#!/bin/sh
# SPDX-License-Identifier: MIT
# hdjit link: code of several sources in one cubin, by nvJitLink.
. "${abs_top_srcdir:-.}/tests/tool/lib.sh"

: >empty.ltoir
expect 1 'none\.ltoir: cannot be opened' "a file that is not there is named" "$HDJIT" link none.ltoir -o x.cubin
expect 1 'empty\.ltoir: is empty' "so is an empty one" "$HDJIT" link empty.ltoir -o x.cubin
echo 'no code' >words
expect 2 'link needs -arch' "the target must be known" "$HDJIT" link words -o x.cubin
"$HDJIT" info --json | tr -d ' \n' | grep -q '"nvrtc":{"path":"' || {
    skip "linking" "there is no NVRTC"
    finish
}
printf '__device__ float helper(float f) { return f + 1; }\n' >helper.cu
printf '__device__ float helper(float f);\nextern "C" __global__ void k(float *x) { *x = helper(*x); }\n' >main.cu
for part in helper main; do
    expect 0 '' "LTO-IR of $part" "$HDJIT" compile $part.cu -o $part.ltoir -arch=sm_90
done
"$HDJIT" link main.ltoir helper.ltoir -o linked.cubin -arch=sm_90 2>err
code=$?
if [ $code -eq 4 ] && grep -q 'nvJitLink' err; then
    result 0 "without nvJitLink, exit 4 and a message that names it"
    skip "linking" "there is no nvJitLink"
    finish
fi
[ $code -eq 0 ] && [ ! -s err ]
result $? "two sources are linked"
sed 's/^/# /' err
expect 0 '' "the result is inspected" "$HDJIT" inspect linked.cubin
says '^linked\.cubin: cubin for sm_90' "as a cubin"
says '^  k\(8 bytes\)$' "with the kernel"
expect 1 'x.cubin.*helper|helper|does not link' "a function that nobody has is a failure" \
    "$HDJIT" link main.ltoir -o x.cubin -arch=sm_90
[ ! -e x.cubin ]
result $? "and nothing is written"
expect 0 '' "PTX by the ending" "$HDJIT" link main.ltoir helper.ltoir -o linked.ptx -arch=sm_90
grep -q '^\.target sm_90' linked.ptx
result $? "is PTX"
expect 2 'it is neither LTO-IR nor PTX' "what is no code is named" "$HDJIT" link words -o x.cubin -arch=sm_90
finish
