# SPDX-License-Identifier: MIT
# What configure.ac asks for, one macro a question.

# HDRT_FLAGS: our own flags in AM_* variables; CFLAGS stay the user's.
AC_DEFUN([HDRT_FLAGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat warnings as errors])], [], [enable_werror=no])
  HDRT_CFLAGS="-std=gnu11 -fvisibility=hidden"
  for hdrt_flag in -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings \
                   -Wvla -Wno-unused-parameter; do
    hdrt_saved=$CFLAGS
    CFLAGS="$CFLAGS -Werror $hdrt_flag"
    AC_MSG_CHECKING([whether $CC accepts $hdrt_flag])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([int hdrt_probe;])],
      [AC_MSG_RESULT([yes]); HDRT_CFLAGS="$HDRT_CFLAGS $hdrt_flag"], [AC_MSG_RESULT([no])])
    CFLAGS=$hdrt_saved
  done
  AS_IF([test "x$enable_werror" = xyes], [HDRT_CFLAGS="$HDRT_CFLAGS -Werror"])
  AC_SUBST([HDRT_CFLAGS])
  # For what is loaded into foreign programs: never instrumented, whatever is added to HDRT_CFLAGS later.
  HDRT_PLAIN_CFLAGS=$HDRT_CFLAGS
  AC_SUBST([HDRT_PLAIN_CFLAGS])
])

# HDRT_SANITIZERS: --enable-sanitizer=address|thread (address brings undefined along) and --enable-coverage.
AC_DEFUN([HDRT_SANITIZERS], [
  # What is preloaded into foreign programs takes none of these; libtool would drop a -fno-sanitize at its link.
  HDRT_PLAIN_CFLAGS=$HDRT_CFLAGS
  AC_SUBST([HDRT_PLAIN_CFLAGS])
  AC_ARG_ENABLE([sanitizer],
    [AS_HELP_STRING([--enable-sanitizer=KIND], [build with a sanitizer: address (with undefined) or thread])],
    [], [enable_sanitizer=no])
  AS_CASE([$enable_sanitizer],
    [no], [hdrt_sanitizer=none],
    [address], [hdrt_sanitizer="address,undefined"
      HDRT_CFLAGS="$HDRT_CFLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
      HDRT_LDFLAGS="-fsanitize=address,undefined"],
    [thread], [hdrt_sanitizer=thread
      HDRT_CFLAGS="$HDRT_CFLAGS -fsanitize=thread -fno-omit-frame-pointer"
      HDRT_LDFLAGS="-fsanitize=thread"],
    [AC_MSG_ERROR([--enable-sanitizer takes address or thread, not '$enable_sanitizer'])])
  AS_IF([test "x$hdrt_sanitizer" != xnone],
    [AC_DEFINE([HDRT_SANITIZED], [1], [Built with a sanitizer: no address space limits on the compile worker.])])
  AM_CONDITIONAL([SANITIZED], [test "x$hdrt_sanitizer" != xnone])
  # The soft driver's arithmetic is built once for each level of x86-64 that pays; under a sanitizer once in all.
  AM_CONDITIONAL([X86_64_LEVELS], [test "x$host_cpu" = xx86_64 && test "x$hdrt_sanitizer" = xnone])
  AC_ARG_ENABLE([coverage], [AS_HELP_STRING([--enable-coverage], [build for gcov])], [], [enable_coverage=no])
  hdrt_coverage=$enable_coverage
  AS_IF([test "x$enable_coverage" = xyes],
    [HDRT_CFLAGS="$HDRT_CFLAGS --coverage -fprofile-update=atomic -DHDRT_COVERAGE"; HDRT_LDFLAGS="$HDRT_LDFLAGS --coverage"])
  AC_SUBST([HDRT_LDFLAGS])
])

# HDRT_CXX: a C++17 compiler, for tests only: that the headers work from C++, and the proof of the driver ABI.
AC_DEFUN([HDRT_CXX], [
  AC_LANG_PUSH([C++])
  hdrt_saved=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS -std=gnu++17"
  AC_MSG_CHECKING([for a C++17 compiler (tests only)])
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([#include <type_traits>
static_assert(std::is_same_v<int, int>);])], [hdrt_have_cxx=yes], [hdrt_have_cxx=no])
  AC_MSG_RESULT([$hdrt_have_cxx])
  CXXFLAGS=$hdrt_saved
  AC_LANG_POP([C++])
  AM_CONDITIONAL([CXX_WORKS], [test "x$hdrt_have_cxx" = xyes])
])

# HDRT_DEPENDENCIES: libraries that the product needs, and Check for its tests.
AC_DEFUN([HDRT_DEPENDENCIES], [
  PKG_CHECK_MODULES([SODIUM], [libsodium])
  PKG_CHECK_MODULES([JANSSON], [jansson])
  AC_CHECK_HEADER([uthash.h], [], [AC_MSG_ERROR([uthash.h not found (Debian: uthash-dev)])])
  AC_SEARCH_LIBS([dlopen], [dl])
  AC_SEARCH_LIBS([pthread_create], [pthread])
  AC_ARG_ENABLE([tests], [AS_HELP_STRING([--disable-tests], [do not build the tests (Check is not needed then)])],
    [], [enable_tests=auto])
  hdrt_have_check=no
  AS_IF([test "x$enable_tests" != xno],
    [PKG_CHECK_MODULES([CHECK], [check >= 0.11], [hdrt_have_check=yes],
      [AS_IF([test "x$enable_tests" = xyes], [AC_MSG_ERROR([--enable-tests needs Check: $CHECK_PKG_ERRORS])])])])
  AM_CONDITIONAL([TESTS_BUILT], [test "x$hdrt_have_check" = xyes])
])

# HDRT_WITH_CUDA: the toolkit's headers only cross-check our own declarations; nothing is built against them.
AC_DEFUN([HDRT_WITH_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR|no],
      [cross-check the driver ABI declarations against the headers in DIR/include (default: /usr/local/cuda if there)])],
    [], [with_cuda=auto])
  hdrt_cuda_include=
  AS_CASE([$with_cuda],
    [no], [],
    [auto|yes], [for hdrt_dir in "$CUDA_HOME" "$CUDA_PATH" /usr/local/cuda /usr; do
      AS_IF([test -n "$hdrt_dir" && test -r "$hdrt_dir/include/cuda.h" && test -r "$hdrt_dir/include/cudaTypedefs.h"],
        [hdrt_cuda_include=$hdrt_dir/include; break])
    done
    AS_IF([test "x$with_cuda" = xyes && test -z "$hdrt_cuda_include"],
      [AC_MSG_ERROR([--with-cuda was given, but no cuda.h and cudaTypedefs.h were found; use --with-cuda=DIR])])],
    [AS_IF([test -r "$with_cuda/include/cuda.h" && test -r "$with_cuda/include/cudaTypedefs.h"],
      [hdrt_cuda_include=$with_cuda/include],
      [AC_MSG_ERROR([--with-cuda: no include/cuda.h and include/cudaTypedefs.h in '$with_cuda'])])])
  # Never -isystem /usr/include: it would hide the C++ library's own wrappers.
  AS_CASE([$hdrt_cuda_include], [''|/usr/include], [hdrt_cuda_cppflags=], [hdrt_cuda_cppflags="-isystem $hdrt_cuda_include"])
  AC_SUBST([CUDA_CHECK_CPPFLAGS], [$hdrt_cuda_cppflags])
  AC_SUBST([CUDA_STUB], ["$hdrt_cuda_include/../lib64/stubs/libcuda.so"])
  AM_CONDITIONAL([CUDA_HEADERS], [test -n "$hdrt_cuda_include"])
  AM_CONDITIONAL([ABI_PROOF], [test -n "$hdrt_cuda_include" && test "x$hdrt_have_cxx" = xyes])
  hdrt_cuda_summary=${hdrt_cuda_include:-none (the ABI cross-check is skipped)}
])

AC_DEFUN([HDRT_COMPLETIONS], [
  AC_ARG_WITH([bash-completion-dir],
    [AS_HELP_STRING([--with-bash-completion-dir=DIR], [where bash completions go (no: nowhere)])],
    [], [with_bash_completion_dir='${datadir}/bash-completion/completions'])
  AM_CONDITIONAL([BASH_COMPLETION], [test "x$with_bash_completion_dir" != xno])
  AC_SUBST([bashcompletiondir], [$with_bash_completion_dir])
])
