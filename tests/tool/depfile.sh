#!/bin/sh
# SPDX-License-Identifier: MIT
# hdjit compile: rules for make, response files, name expressions, lists of kernels, diagnostics as JSON.
. "${abs_top_srcdir:-.}/tests/tool/lib.sh"

have_compiler clang || {
    echo "1..0 # SKIP rules for make need clang (Debian: clang-19)"
    exit 0
}
compile() {
    "$HDJIT" compile -arch=sm_80 --compiler=clang "$@"
}

folder='a b#c$d:e%f'
mkdir "$folder"
echo '#define N 1' >"$folder/größe \\ #1.h"
printf '#include "größe \\\\ #1.h"\nextern "C" __global__ void one(int *x) { *x = N; }\n' >one.cu
sed 's/\\\\/\\/' one.cu >two.cu && mv two.cu one.cu

expect 0 '' "-MD writes a rule beside the code" compile one.cu -I "$folder" -o out.ptx -MD
grep -q '^out\.ptx: one\.cu \\$' out.d
result $? "for the code, with the source first"
grep -qF 'a\ b\#c$$d\:e%f/größe\ \\\ \#1.h' out.d
result $? "and names quoted for make"
expect 0 '' "again, from the cache" compile one.cu -I "$folder" -o again.ptx -MD
sed 's/again/out/' again.d >again
sort again >again.sorted
sort out.d | sed 's/ \\$//' >out.sorted
sed 's/ \\$//' again.sorted >again.same
same again.same out.sorted "the same files"
if command -v make >/dev/null; then
    printf 'out.ptx:\n\techo made >made; touch out.ptx\n-include out.d\n' >Makefile
    make -s >make.out 2>&1
    [ $? -eq 0 ] && [ ! -e made ]
    result $? "make reads it, and finds nothing to do"
    sed 's/^/# /' make.out
    touch -d '+2 seconds' "$folder/größe \\ #1.h"
    make -s >make.out 2>&1
    [ -e made ]
    result $? "and makes it when the header changed"
    rm made
    mv "$folder" gone
    make -s >make.out 2>&1
    [ $? -ne 0 ]
    result $? "a header that is gone stops make"
    mv gone "$folder"
    compile one.cu -I "$folder" -o out.ptx -MD -MP 2>err
    mv "$folder" gone
    make -s >make.out 2>&1
    [ -e made ]
    result $? "but not with -MP"
    mv gone "$folder"
else
    skip "make reads the rules" "there is no make"
fi
expect 0 '' "-M prints the rule" compile one.cu -I "$folder" -M
says '^one\.ptx: one\.cu' "for what the code would be called"
expect 0 '' "-MT and -MQ name targets" compile one.cu -I "$folder" -M -MT '$(OUT)' -MQ 'b c$%'
says '^\$\(OUT\) b\\ c\$\$\\%: one\.cu' "as they are, and quoted"
expect 0 '' "-MF names the file" compile one.cu -I "$folder" -M -MF rule -o x.ptx
grep -q '^x\.ptx: ' rule && [ ! -e x.ptx ]
result $? "and -M writes no code"
expect 0 '' "-MD with code to standard output" compile one.cu -I "$folder" -o - -MD -MF rule2
grep -q '^one\.ptx: ' rule2 && grep -q 'entry one' out
result $? "keeps them apart"
expect 0 '' "and with the rule to standard output" compile one.cu -I "$folder" -o y.ptx -MD -MF -
says '^y\.ptx: ' "too"
expect 1 'nowhere/d: cannot be written' "a rule that cannot be written" compile one.cu -I "$folder" -o z.ptx -MD -MF nowhere/d
[ ! -e z.ptx ]
result $? "leaves no code"
expect 1 'has a line feed in it' "a name that make cannot read is named" compile one.cu -I "$folder" -MD -MF rule3 \
    -o 'line
feed.ptx'
[ ! -e rule3 ]
result $? "and no rule is written"

# Response files.
printf '%s\n' "-I 'a b#c\$d:e%f' \"-DX=a b\"" '-DY=\"q\"' '@inner.rsp' >outer.rsp
echo '-o rsp.ptx' >inner.rsp
expect 0 '' "a response file with quotes, and another in it" compile @outer.rsp one.cu
[ -s rsp.ptx ]
result $? "is taken for its words"
compile @outer.rsp one.cu --print-cmd 2>err
grep -qF -- "-I '$PWD/$folder'" err
result $? "which --print-cmd shows, quoted for a shell"
grep -q 'clang.* --cuda-gpu-arch=sm_80 ' err
result $? "with the compiler and its own options"

# Kernels.
cat >names.cu <<'END'
namespace ns {
template <typename T, int N> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by * N; }
}
extern "C" __global__ void plain(int *x, double d, short s) { *x = d + s; }
END
expect 0 '' "kernels are listed" compile names.cu --list-kernels
says '^plain\(i64, f64, i16\)$' "with their parameters"
expect 0 '' "with name expressions" compile names.cu --list-kernels -x 'ns::scale<float, 4>' --name='ns::scale<int, 1>'
says '^_ZN2ns5scaleIfLi4EEEvPT_S1_\(i64, f32\)$' "those of templates too"
says 'by the name expression ns::scale<float, 4>$' "with the expression"
expect 1 'ns::nothing' "one that the source does not know is named" compile names.cu --list-kernels -x 'ns::nothing<4>'
printf 'template <int N> __global__ void k() {}\n' >templates.cu
expect 0 'no __global__ function' "a source of templates" compile templates.cu --list-kernels
says '^no kernels' "has no kernels by itself"
if soft; then
    expect 0 '' "a kernel is run by its expression" "$HDJIT" run names.cu 'ns::scale<int, 2>' -x 'ns::scale<int, 2>' \
        --grid 1 --block 1 out:x:4 i32:3
fi

# Diagnostics.
printf 'extern "C" __global__ void k(int *x) {\n#warning look\n    *x = wrong;\n}\n' >wrong.cu
expect 1 '^\{' "errors as JSON" compile wrong.cu -o w.ptx --diagnostics=json
compile wrong.cu -o w.ptx --diagnostics=json 2>err
grep -q '"file":"[^"]*wrong\.cu","line":3,"column":10,"severity":"error","text":"[^"]*wrong' err
result $? "have file, line, column, severity and text"
grep -q '"line":2,"column":[0-9]*,"severity":"warning"' err
result $? "warnings too"
grep -q '^{"severity":"error","text":"wrong.cu does not compile","from":"hdjit"}$' err
result $? "and what hdjit itself says"
! grep -qv '^{.*}$' err
result $? "each line is an object"
if have_compiler nvrtc; then
    "$HDJIT" compile wrong.cu -o w.ptx --compiler=nvrtc -arch=sm_80 --diagnostics=json 2>err
    grep -q '"line":3,"column":10,"severity":"error"' err
    result $? "NVRTC's have columns too"
else
    skip "NVRTC's have columns too" "there is no NVRTC"
fi
finish
