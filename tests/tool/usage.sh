#!/bin/sh
# SPDX-License-Identifier: MIT
# The command line of hdjit: help, version, options in any place, bad usage, environment, info and env.
. "${abs_top_srcdir:-.}/tests/tool/lib.sh"

expect 0 '' "--version says the version" "$HDJIT" --version
grep -q '^hdjit (libhdrt) [0-9]*\.[0-9]*\.[0-9]*$' out
result $? "the version has the form of the GNU standards"
expect 0 '' "--help helps" "$HDJIT" --help
for command in compile link inspect precompile run pipe cache info env; do
    grep -q "^  $command " out
    result $? "--help names $command"
done
cp out help
for command in compile link inspect precompile run pipe info env cache 'cache stats' 'cache list' 'cache path' 'cache verify' 'cache trim' \
    'cache clear' 'cache explain'; do
    expect 0 '' "$command --help helps" "$HDJIT" $command --help
    grep -q "^Usage: hdjit $command" out
    result $? "$command --help begins with its usage"
done
expect 0 '' "run --help helps in spite of what else is there" "$HDJIT" run nothing --help --grid 1

expect 2 'no command: expected compile, .*run, .* or [a-z]*; see hdjit --help' "no command is bad usage" "$HDJIT"
expect 2 "'walk' is no command" "an unknown command is bad usage" "$HDJIT" walk
expect 2 '--walk is not an option' "an unknown option is bad usage" "$HDJIT" --walk
expect 2 '--walk is not an option.*hdjit run --help' "and of a command too" "$HDJIT" run --walk
expect 2 '-z is not an option' "an unknown letter is bad usage" "$HDJIT" compile -z
expect 2 '--grid needs a value' "a missing value is bad usage" "$HDJIT" run file kernel --grid
expect 2 '--stats=1 takes no value' "a value too many is bad usage" "$HDJIT" pipe --stats=1 file kernel
expect 2 '--json is not an option' "an option of another command is bad usage" "$HDJIT" run --json
expect 2 '--set is empty' "an empty value is bad usage" "$HDJIT" run file kernel --set=
expect 2 "--driver is 'metal': expected auto, cuda or soft" "an unknown driver is bad usage" \
    "$HDJIT" info --driver=metal
expect 2 "HDRT_DRIVER is 'metal': expected auto, cuda or soft" "and in the environment" \
    env HDRT_DRIVER=metal "$HDJIT" info
expect 2 "HDRT_DEVICE is '-1'" "a bad device in the environment is bad usage" env HDRT_DEVICE=-1 "$HDJIT" info
expect 2 "--device is '1x'" "a device is a number" "$HDJIT" info --device=1x
expect 2 "--log is 'loud'" "an unknown log level is bad usage" "$HDJIT" info --log=loud
expect 2 "info takes no words, but got 'all'" "info takes no words" "$HDJIT" info all
expect 2 "env takes no words, but got 'all'" "env takes no words" "$HDJIT" env all
expect 2 'cache needs to know what: expected stats, list,' "cache alone is bad usage" "$HDJIT" cache
expect 2 "'walk' is no command of cache: expected stats" "an unknown command of cache is bad usage" "$HDJIT" cache walk
expect 2 "cache stats takes no words, but got 'all'" "cache stats takes no words" "$HDJIT" cache stats all
expect 2 "--repair is not an option here.*hdjit cache stats --help" "an option of another command of cache is bad usage" \
    "$HDJIT" cache stats --repair
for age in '' d 0 0d -1d 1y 1.5h 99999999999d; do
    expect 2 "--max-age is" "an age of '$age' is bad usage" "$HDJIT" cache trim --max-age="$age"
done
expect 2 '--max-size is' "a size of 0 is bad usage" "$HDJIT" cache trim --max-size=0
expect 2 'cache explain needs a source file' "cache explain without a file is bad usage" "$HDJIT" cache explain
expect 2 "cache explain takes one source file, but got 'y.cu' too" "cache explain of two files is bad usage" \
    "$HDJIT" cache explain x.cu y.cu
expect 2 'compile needs a source file' "compile without a file is bad usage" "$HDJIT" compile -o x.ptx
expect 2 'compile needs -o OUT' "compile without OUT is bad usage" "$HDJIT" compile x.cu
expect 2 "compile takes one source file, but got 'y.cu' too" "compile of two files is bad usage" \
    "$HDJIT" compile x.cu y.cu -o x.ptx
expect 2 '--ptx, --cubin and --lto-ir only one' "two kinds of code are bad usage" "$HDJIT" compile x.cu -o x --ptx --cubin
expect 2 'several targets .*need a bundle: name it .hdb' "two targets in one PTX file are bad usage" \
    "$HDJIT" compile x.cu -o x.ptx -arch=sm_80,sm_90
for arch in sm_80, ,sm_80 sm_80,,sm_90; do
    expect 2 "-arch is '$arch': expected sm_XX, several with commas" "targets '$arch' are bad usage" \
        "$HDJIT" compile x.cu -o x.hdb -arch=$arch
done
expect 2 'sm_80 is there twice' "a target twice is bad usage" "$HDJIT" compile x.cu -o x.hdb -arch=sm_80,sm_90,sm_80
for option in -MF=x.d -MT=x -MQ=x -MP; do
    expect 2 'for -M or -MD: give one of them' "$option without -M and -MD is bad usage" \
        "$HDJIT" compile x.cu -o x.ptx $option
done
expect 2 '-MD needs -MF FILE' "-MD with standard output needs -MF" "$HDJIT" compile x.cu -o - -MD
expect 2 '-MF and -o cannot both' "two things for standard output are bad usage" \
    "$HDJIT" compile x.cu -o - -MD -MF -
expect 2 '--list-kernels and -o cannot both' "a list and code for standard output are bad usage" \
    "$HDJIT" compile x.cu -o - --list-kernels
expect 2 "--diagnostics is 'xml': expected text or json" "unknown diagnostics are bad usage" \
    "$HDJIT" compile x.cu -o x --diagnostics=xml
for jobs in 0 -1 x 1025; do
    expect 2 '--jobs is .*1 to 1024' "$jobs jobs are bad usage" "$HDJIT" compile x.cu -o x --jobs=$jobs
done
expect 2 'link needs files' "link without files is bad usage" "$HDJIT" link -o x.cubin
expect 2 'link needs -o OUT' "link without OUT is bad usage" "$HDJIT" link x.ltoir
expect 2 'inspect needs a file' "inspect without a file is bad usage" "$HDJIT" inspect
expect 2 'precompile needs a list' "precompile without a list is bad usage" "$HDJIT" precompile --into x
expect 2 'precompile needs --into DIR' "precompile without a folder is bad usage" "$HDJIT" precompile x
expect 2 "precompile takes one list, but got 'y' too" "precompile of two lists is bad usage" \
    "$HDJIT" precompile x y --into z
expect 2 'none\.rsp: cannot be opened' "a response file that is not there is bad usage" "$HDJIT" compile @none.rsp
echo "'x" >open.rsp
expect 2 "open\.rsp: a quote .'. is not closed" "so is an open quote in one" "$HDJIT" compile @open.rsp
echo @self.rsp >self.rsp
expect 2 'name each other more than 10 deep' "and one that names itself" "$HDJIT" compile @self.rsp
expect 1 '@file\.cu' "a word behind -- is no response file" "$HDJIT" compile -o x.ptx -arch=sm_80 -- @file.cu
expect 2 'clang makes PTX only' "a cubin from clang is bad usage" "$HDJIT" compile x.cu -o x.cubin --compiler=clang
expect 2 "--compiler is 'tcc': expected auto, nvrtc or clang" "an unknown compiler is bad usage" \
    "$HDJIT" compile x.cu -o x --compiler=tcc
for limit in 0 -1 1e9 abc nan; do
    expect 2 "--time-limit is '$limit'" "a time limit of $limit is bad usage" \
        "$HDJIT" compile x.cu -o x --time-limit=$limit
done
expect 2 'run needs a file and a kernel' "run without a kernel is bad usage" "$HDJIT" run x.cu
expect 2 'run needs --grid' "run without a grid is bad usage" "$HDJIT" run x.cu k --block 1
expect 2 'run needs --block' "run without a block is bad usage" "$HDJIT" run x.cu k --grid 1
for grid in '' 1, ,1 1,2,3,4 x 1.5 -1 4294967296 '1 2'; do
    expect 2 '--grid is' "a grid of '$grid' is bad usage" "$HDJIT" run x.cu k --block 1 --grid "$grid"
done
for block in 0 1,0 1,1,0; do
    expect 2 '--block is .*1 thread or more' "a block of $block is bad usage" \
        "$HDJIT" run x.cu k --grid 1 --block $block
done
expect 2 '--repeat is .0.: expected a whole number, 1 to' "0 repeats are bad usage" \
    "$HDJIT" run x.cu k --grid 1 --block 1 --repeat 0
expect 2 '--shared is' "too much shared memory for 32 bits is bad usage" \
    "$HDJIT" run x.cu k --grid 1 --block 1 --shared 4G
expect 2 "--set is 'a': expected NAME=FILE" "--set without a file is bad usage" \
    "$HDJIT" run x.cu k --grid 1 --block 1 --set a
expect 2 'pipe needs a file and a kernel' "pipe without a kernel is bad usage" "$HDJIT" pipe x.cu
for batch in 0 4X 99999999999G -4; do
    expect 2 '--batch is' "a batch of $batch is bad usage" "$HDJIT" pipe x.cu k --batch=$batch
done
for depth in 0 65; do
    expect 2 '--depth is .*1 to 64' "a depth of $depth is bad usage" "$HDJIT" pipe x.cu k --depth=$depth
done
expect 2 'the source cannot be standard input' "pipe's source is no standard input" "$HDJIT" pipe - k
expect 2 'cannot be a standard stream' "pipe's arguments are no standard streams" "$HDJIT" pipe x.cu k in:-

expect 0 '' "env works" env HDRT_DEVICE=3 "$HDJIT" env
for variable in HDRT_DRIVER HDRT_DEVICE HDRT_CACHE_DIR HDRT_NVRTC HDRT_CLANG HDRT_LIBEXEC HDRT_TEMPLATES HDRT_LOG; do
    grep -q "^$variable" out
    result $? "env shows $variable"
done
grep -q "^HDRT_DEVICE='3'" out
result $? "env shows a value"

expect 0 '' "info works" "$HDJIT" info
for word in '^driver  *soft' '^  cuda ' '^  soft ' '^devices' '^  0 .*compute capability 9\.0' '^  nvrtc ' '^  clang ' \
    '^companions (' '^  hdrt-cc ' '^cache  *[^ ]*/cache$'; do
    grep -q "$word" out
    result $? "info has a line like '$word'"
done
mkdir open real
chmod 777 open
ln -s real link
before=$(ls -R open real)
for folder in open link; do
    expect 0 '*' "info works with a cache folder that is refused" env HDRT_CACHE_DIR="$PWD/$folder" "$HDJIT" info
    grep -Eq '^cache .*not used: .*(is a symbolic link|written by other users)' out
    result $? "and says that it is not used, and why"
done
[ "$before" = "$(ls -R open real)" ]
result $? "and makes nothing"
expect 0 '' "info --json works" "$HDJIT" info --json
for key in version driver drivers cuda soft devices compilers nvrtc clang companions rule worker soft_driver prelude \
    cache folder; do
    grep -q "\"$key\":" out
    result $? "info --json has $key"
done
expect 3 'the cuda driver cannot be used' "info says that the driver asked for is not usable" \
    env CUDA_VISIBLE_DEVICES=-1 "$HDJIT" info --driver=cuda
grep -q '^companions (' out
result $? "and shows the rest"
expect 3 'the soft driver cannot be used' "a driver whose companion is missing is not usable" \
    env HDRT_LIBEXEC="$scratch" "$HDJIT" info --libexec="$scratch/none"

if [ -w /dev/full ]; then
    "$HDJIT" --help >/dev/full 2>err
    [ $? -eq 1 ] && grep -q 'standard output: cannot be written: No space' err
    result $? "help into a full disk is a failure"
else
    skip "help into a full disk is a failure" "there is no /dev/full"
fi
"$HDJIT" info >&- 2>err
[ $? -eq 1 ] && grep -q 'standard output: cannot be written' err
result $? "info without a standard output is a failure"
"$HDJIT" walk 2>&-
[ $? -eq 2 ]
result $? "the exit code tells even without a standard error"

# The completion offers what the help lists.
if bash -c true 2>/dev/null; then
    PATH=$(dirname "$HDJIT"):$PATH bash -c '
        . "$1"
        COMP_WORDS=(hdjit pipe --d) COMP_CWORD=2; _hdjit; echo "${COMPREPLY[@]}"
        COMP_WORDS=(hdjit r) COMP_CWORD=1; _hdjit; echo "${COMPREPLY[@]}"
        COMP_WORDS=(hdjit run --driver = s) COMP_CWORD=4; _hdjit; echo "${COMPREPLY[@]}"
        COMP_WORDS=(hdjit cache t) COMP_CWORD=2; _hdjit; echo "${COMPREPLY[@]}"
        COMP_WORDS=(hdjit cache trim --m) COMP_CWORD=3; _hdjit; echo "${COMPREPLY[@]}"
    ' - "$top/tools/hdjit/hdjit.bash" >completed 2>err
    printf '%s\n' '--depth= --diagnostics= --driver= --device=' run soft 'trim' '--max-size= --max-age=' | cmp -s - completed
    result $? "bash completes commands, options and values"
    sed 's/^/# /' completed
else
    skip "bash completes commands, options and values" "there is no bash"
fi

# Every option of the help stands in the manual.
missing=
for command in '' compile link inspect precompile run pipe info env cache 'cache stats' 'cache verify' 'cache trim' 'cache explain'; do
    "$HDJIT" $command --help | sed -n 's/^  \(-[A-Za-z],\)\{0,1\} *--*\([A-Za-z_-]*\).*/\2/p'
done | sort -u >options
while read -r option; do
    sed 's/\\-/-/g; s/\\f[A-Z]//g' "$top/tools/hdjit/hdjit.1" | grep -Eq -- "--?$option" || missing="$missing $option"
done <options
[ -s options ] && [ -z "$missing" ]
result $? "the manual has every option"
[ -z "$missing" ] || echo "# missing:$missing"
finish
