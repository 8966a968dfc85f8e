#!/bin/sh
# SPDX-License-Identifier: MIT
# hdjit compile for several targets, and hdjit inspect.
. "${abs_top_srcdir:-.}/tests/tool/lib.sh"

printf 'extern "C" __global__ void one(int *x, float f) { *x = 7; }\n' >one.cu
printf '.version 7.5\n.target sm_75\n.address_size 64\n.visible .entry k(.param .f64 d)\n{\n    ret;\n}\n' >k.ptx
expect 0 '' "PTX is inspected" "$HDJIT" inspect k.ptx
says '^k\.ptx: PTX for sm_75, [0-9]* bytes, version 7\.5$' "with its target and version"
says '^  k\(f64\)$' "and kernels"
expect 0 '' "and as JSON" "$HDJIT" inspect k.ptx --json
says '"arch": "sm_75"' "with the target"
says '"class": "float"' "and the class of each parameter"
expect 1 'one\.cu.*neither a cubin nor PTX' "a source is no code" "$HDJIT" inspect one.cu
expect 1 'none: cannot be opened' "a file that is not there is named" "$HDJIT" inspect none k.ptx
says '^k\.ptx: ' "and the others are shown"
: >empty
expect 1 'empty: is empty' "so is an empty one" "$HDJIT" inspect empty

have_compiler clang || {
    skip "bundles" "there is no clang (Debian: clang-19)"
    finish
}
expect 0 '' "several targets make a bundle" "$HDJIT" compile one.cu -o one.hdb --compiler=clang -arch=sm_75,sm_80,sm_90 -j2
expect 0 '' "it is inspected" "$HDJIT" inspect one.hdb
says '^one\.hdb: bundle of 3 images' "as one"
for arch in sm_75 sm_80 sm_90; do
    says "^  PTX for $arch," "with $arch"
done
says '^    command .*clang' "and how each was made"
expect 0 '' "--bundle with another ending" "$HDJIT" compile one.cu -o other --compiler=clang -arch=sm_75,sm_80,sm_90 --bundle
same one.hdb other "is the same"
expect 0 '' "to standard output" "$HDJIT" compile one.cu -o - --compiler=clang -arch=sm_75,sm_80,sm_90
same one.hdb out "too"
expect 0 '' "one target in a bundle" "$HDJIT" compile one.cu -o single.hdb --compiler=clang -arch=sm_80
"$HDJIT" inspect single.hdb >out 2>err
says 'bundle of 1 image,' "is one"
expect 0 '' "the rule for make of a bundle" "$HDJIT" compile one.cu --compiler=clang -arch=sm_75,sm_80 -M
says '^one\.hdb: one\.cu' "is for it"
expect 0 '' "kernels of several targets" "$HDJIT" compile one.cu --compiler=clang -arch=sm_75,sm_80 --list-kernels
[ "$(grep -c '^    one(i64, f32)$' out)" -eq 2 ]
result $? "are listed for each"
expect 2 'sm_1000' "a target that the compiler does not know is named" \
    "$HDJIT" compile one.cu -o bad.hdb --compiler=clang -arch=sm_80,sm_1000
[ ! -e bad.hdb ]
result $? "and nothing is written"
printf 'extern "C" __global__ void k() { wrong; }\n' >wrong.cu
expect 1 'wrong\.cu:1:[0-9]*: error' "an error in the source is one of the compile" \
    "$HDJIT" compile wrong.cu -o bad.hdb --compiler=clang -arch=sm_75,sm_80
if soft; then
    expect 0 '' "the soft driver runs what suits it" "$HDJIT" run one.hdb one --grid 1 --block 1 out:x:4 f32:1
    [ "$(od -An -tu4 x | tr -d ' ')" = 7 ]
    result $? "with the right result"
fi
cp one.hdb cut.hdb
printf 'x' | dd of=cut.hdb bs=1 seek=700 conv=notrunc 2>/dev/null
expect 1 "bundle 'cut\.hdb' cannot be used: the entry's digest" "a damaged bundle is refused" "$HDJIT" inspect cut.hdb
image=$("$HDJIT" cache explain one.cu -arch=sm_80 --compiler=clang | sed -n 's/^image  *//p')
expect 0 '' "a file of the cache is inspected" "$HDJIT" inspect "$image"
says 'PTX for sm_80' "as what it is"
says '^  source .*/one\.cu$' "with its source"

if have_compiler nvrtc; then
    expect 0 '' "NVRTC makes cubins" "$HDJIT" compile one.cu -o nvrtc.hdb --compiler=nvrtc -arch=sm_80,sm_90
    "$HDJIT" inspect nvrtc.hdb >out 2>err
    says '^  cubin for sm_90, [0-9]* bytes, and PTX' "and keeps PTX beside each"
    says 'registers, 0 bytes of shared' "with what the kernels need"
    "$HDJIT" compile one.cu -o one.cubin -arch=sm_90 2>err
    expect 0 '' "a cubin is inspected" "$HDJIT" inspect one.cubin
    says '^one\.cubin: cubin for sm_90,' "with its target"
    if soft; then
        expect 1 'no code that runs on sm_90 of the soft driver.*sm_80 cubin and PTX from NVRTC' \
            "the soft driver takes none of them" "$HDJIT" run nvrtc.hdb one --grid 1 --block 1 out:x:4 f32:1
    fi
else
    skip "bundles of cubins" "there is no NVRTC"
fi
finish
