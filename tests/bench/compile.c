/* SPDX-License-Identifier: MIT */
/*
 * What a compile through the worker costs beside NVRTC's own call, with CUB kernels, in one run and by turns:
 *
 *  1. one kernel: hdrt_image_compile with a warm worker against nvrtcCompileProgram in a warm process;
 *  2. eight kernels: how much faster a batch on two workers is than on one, against two raw processes and one.
 *
 * Usage: compile [ROUNDS]. Needs NVRTC and a toolkit's headers (CUDA_HOME, or /usr/local/cuda); no GPU. Prints medians
 * and minima, and the two ratios that count: made of minima, because other work on the machine only adds.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hdrt.h>

#define KERNELS 8
#define MOST_ROUNDS 99
#define ARCH "sm_80"

static const char *const headers[KERNELS] = {
    "block/block_reduce", "block/block_scan",      "block/block_radix_sort", "block/block_histogram",
    "warp/warp_reduce",   "block/block_merge_sort", "block/block_exchange",   "warp/warp_scan",
};
static const char *const bodies[KERNELS] = {
    "using R = cub::BlockReduce<float, 256>; __shared__ typename R::TempStorage t; "
    "p[blockIdx.x] = R(t).Sum(p[threadIdx.x]);",
    "using S = cub::BlockScan<int, 256>; __shared__ typename S::TempStorage t; int v = q[threadIdx.x]; "
    "S(t).ExclusiveSum(v, v); q[threadIdx.x] = v;",
    "using S = cub::BlockRadixSort<int, 256, 4>; __shared__ typename S::TempStorage t; int v[4]; "
    "for (int i = 0; i < 4; i++) v[i] = q[threadIdx.x * 4 + i]; S(t).Sort(v); "
    "for (int i = 0; i < 4; i++) q[threadIdx.x * 4 + i] = v[i];",
    "using H = cub::BlockHistogram<unsigned char, 256, 4, 256>; __shared__ typename H::TempStorage t; "
    "__shared__ int bins[256]; unsigned char v[4]; for (int i = 0; i < 4; i++) v[i] = q[threadIdx.x + i]; "
    "H(t).Histogram(v, bins); q[threadIdx.x] = bins[threadIdx.x];",
    "using R = cub::WarpReduce<float>; __shared__ typename R::TempStorage t[8]; "
    "p[threadIdx.x] = R(t[threadIdx.x / 32]).Sum(p[threadIdx.x]);",
    "using S = cub::BlockMergeSort<int, 256, 4>; __shared__ typename S::TempStorage t; int v[4]; "
    "for (int i = 0; i < 4; i++) v[i] = q[threadIdx.x * 4 + i]; S(t).Sort(v, Less()); "
    "for (int i = 0; i < 4; i++) q[threadIdx.x * 4 + i] = v[i];",
    "using E = cub::BlockExchange<int, 256, 4>; __shared__ typename E::TempStorage t; int v[4]; "
    "for (int i = 0; i < 4; i++) v[i] = q[threadIdx.x * 4 + i]; E(t).StripedToBlocked(v, v); "
    "for (int i = 0; i < 4; i++) q[threadIdx.x * 4 + i] = v[i];",
    "using S = cub::WarpScan<int>; __shared__ typename S::TempStorage t[8]; int v; "
    "S(t[threadIdx.x / 32]).InclusiveSum(q[threadIdx.x], v); q[threadIdx.x] = v;",
};

static char sources[KERNELS][2048], include[2][600];
static char nvrtc_path[600];

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "compile: %s\n", what);
    exit(1);
}

/* ---- the raw side: NVRTC in processes of its own ----------------------------------------------------------------- */

typedef struct _nvrtcProgram *program;

static struct {
    int (*create)(program *out, const char *source, const char *name, int count, const char *const *texts,
                  const char *const *names);
    int (*compile)(program made, int count, const char *const *options);
    int (*cubin_size)(program made, size_t *size);
    int (*cubin)(program made, char *bytes);
    int (*destroy)(program *made);
} raw;

static double raw_compile(int index)
{
    const char *options[] = {"--gpu-architecture=" ARCH, "-no-cache", include[0], include[1]};
    program made;
    size_t size = 0;
    double began = now_ms();
    if (raw.create(&made, sources[index], "k.cu", 0, NULL, NULL) != 0 || raw.compile(made, 4, options) != 0 ||
        raw.cubin_size(made, &size) != 0)
        return -1;
    char *bytes = malloc(size);
    if (bytes == NULL || raw.cubin(made, bytes) != 0)
        return -1;
    free(bytes);
    raw.destroy(&made);
    return now_ms() - began;
}

/* Each byte that comes asks for a compile; the answer is how long it took. */
static _Noreturn void serve_raw(int socket)
{
    void *library = dlopen(nvrtc_path, RTLD_NOW);
    if (library == NULL)
        give_up(dlerror());
    *(void **)&raw.create = dlsym(library, "nvrtcCreateProgram");
    *(void **)&raw.compile = dlsym(library, "nvrtcCompileProgram");
    *(void **)&raw.cubin_size = dlsym(library, "nvrtcGetCUBINSize");
    *(void **)&raw.cubin = dlsym(library, "nvrtcGetCUBIN");
    *(void **)&raw.destroy = dlsym(library, "nvrtcDestroyProgram");
    unsigned char index;
    while (read(socket, &index, 1) == 1) {
        double took = raw_compile(index);
        if (write(socket, &took, sizeof took) != sizeof took)
            break;
    }
    _exit(0);
}

static int start_raw(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        give_up("no socket");
    if (fork() == 0) {
        close(pair[0]);
        serve_raw(pair[1]);
    }
    close(pair[1]);
    return pair[0];
}

static void ask_raw(int socket, int index)
{
    unsigned char byte = (unsigned char)index;
    if (write(socket, &byte, 1) != 1)
        give_up("a raw process ended");
}

static double answer_raw(int socket)
{
    double took;
    if (read(socket, &took, sizeof took) != sizeof took || took < 0)
        give_up("NVRTC itself does not compile a kernel");
    return took;
}

/* All kernels on `count` processes, each taking the next when it is done; wall time. */
static double all_raw(const int *sockets, int count)
{
    struct pollfd fds[2] = {{sockets[0], POLLIN, 0}, {count > 1 ? sockets[1] : -1, POLLIN, 0}};
    double began = now_ms();
    int next = 0;
    for (int i = 0; i < count; i++)
        ask_raw(sockets[i], next++);
    for (int done = 0; done < KERNELS;) {
        if (poll(fds, 2, -1) < 0)
            give_up("poll failed");
        for (int i = 0; i < count; i++) {
            if (fds[i].revents == 0)
                continue;
            answer_raw(sockets[i]);
            done++;
            if (next < KERNELS)
                ask_raw(sockets[i], next++);
        }
    }
    return now_ms() - began;
}

/* ---- our side ---------------------------------------------------------------------------------------------------- */

static hdrt_runtime *open_runtime(uint32_t workers)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_runtime *runtime;
    options.driver = HDRT_DRIVER_NONE;
    options.cache_dir = "";
    options.compile_workers = workers;
    if (hdrt_runtime_create(&options, &runtime) != HDRT_OK)
        give_up(hdrt_last_error());
    return runtime;
}

/* Kernels first to first + count - 1, wall time. */
static double all_ours(hdrt_runtime *runtime, int first, int count)
{
    const char *given[] = {include[0], include[1]};
    hdrt_source made[KERNELS];
    hdrt_compile_item items[KERNELS];
    hdrt_image *images[KERNELS];
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    options.compiler = HDRT_COMPILER_NVRTC;
    options.arch = ARCH;
    options.options = given;
    options.option_count = 2;
    options.no_cache = true;
    for (int i = 0; i < count; i++) {
        made[i] = (hdrt_source)HDRT_SOURCE_INIT;
        made[i].text = sources[first + i];
        made[i].name = "k.cu";
        items[i] = (hdrt_compile_item){&made[i], &options};
    }
    double began = now_ms();
    hdrt_status status = count == 1 ? hdrt_image_compile(runtime, &made[0], &options, &images[0])
                                    : hdrt_image_compile_batch(runtime, items, (uint32_t)count, images);
    double took = now_ms() - began;
    if (status != HDRT_OK)
        give_up(hdrt_last_error());
    for (int i = 0; i < count; i++)
        hdrt_image_destroy(images[i]);
    return took;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double minimum(double *values, int count, const char *what)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    printf("  %-44s median %7.1f ms, minimum %7.1f ms\n", what, values[count / 2], values[0]);
    return values[0];
}

static void find_headers(void)
{
    const char *home = getenv("CUDA_HOME");
    char probe[700];
    struct stat status;
    if (home == NULL || *home == '\0')
        home = "/usr/local/cuda";
    snprintf(include[0], sizeof include[0], "-I%s/include", home);
    snprintf(include[1], sizeof include[1], "-I%s/include/cccl", home);
    snprintf(probe, sizeof probe, "%s/cub/block/block_reduce.cuh", include[1] + 2);
    if (stat(probe, &status) != 0)
        give_up("there are no CUB headers below CUDA_HOME/include/cccl");
    for (int i = 0; i < KERNELS; i++)
        snprintf(sources[i], sizeof sources[i], "#include <cub/%s.cuh>\n"
                 "struct Less { __device__ bool operator()(int a, int b) const { return a < b; } };\n"
                 "extern \"C\" __global__ void k%d(float *p, int *q) { %s }\n", headers[i], i, bodies[i]);
}

int main(int argc, char **argv)
{
    static double one_raw[MOST_ROUNDS], one_ours[MOST_ROUNDS], serial_raw[MOST_ROUNDS], parallel_raw[MOST_ROUNDS],
        serial_ours[MOST_ROUNDS], parallel_ours[MOST_ROUNDS];
    int rounds = argc > 1 ? atoi(argv[1]) : 5, sockets[2];
    hdrt_compiler_info info = HDRT_COMPILER_INFO_INIT;
    if (rounds < 1 || rounds > MOST_ROUNDS)
        give_up("the number of rounds is from 1 to 99");
    find_headers();
    hdrt_runtime *one = open_runtime(1), *two = open_runtime(2);
    if (hdrt_runtime_compiler(one, HDRT_COMPILER_NVRTC, &info) != HDRT_OK || info.path == NULL)
        give_up("there is no NVRTC");
    snprintf(nvrtc_path, sizeof nvrtc_path, "%s", info.path);
    sockets[0] = start_raw();
    sockets[1] = start_raw();
    all_raw(sockets, 2); /* warm: library loaded, headers in the page cache */
    all_ours(one, 0, KERNELS);
    all_ours(two, 0, KERNELS);
    for (int i = 0; i < rounds; i++) {
        ask_raw(sockets[0], 0);
        one_raw[i] = answer_raw(sockets[0]);
        one_ours[i] = all_ours(one, 0, 1);
        serial_raw[i] = all_raw(sockets, 1);
        serial_ours[i] = all_ours(one, 0, KERNELS);
        parallel_raw[i] = all_raw(sockets, 2);
        parallel_ours[i] = all_ours(two, 0, KERNELS);
    }
    printf("NVRTC %u.%u, %s, %d rounds\n", info.version_major, info.version_minor, info.path, rounds);
    double raw_one = minimum(one_raw, rounds, "BlockReduce, nvrtcCompileProgram in process:");
    double ours_one = minimum(one_ours, rounds, "BlockReduce, through a warm worker:");
    double raw_serial = minimum(serial_raw, rounds, "8 kernels, one raw process:");
    double raw_parallel = minimum(parallel_raw, rounds, "8 kernels, two raw processes:");
    double ours_serial = minimum(serial_ours, rounds, "8 kernels, one worker:");
    double ours_parallel = minimum(parallel_ours, rounds, "8 kernels, two workers:");
    double raw_gain = raw_serial / raw_parallel, gain = ours_serial / ours_parallel;
    printf("worker / raw: %.3f (wanted: at most 1.1)\n", ours_one / raw_one);
    printf("speed-up by two workers %.2f, by two raw processes %.2f: %.3f of it (wanted: at least 0.9)\n", gain,
           raw_gain, gain / raw_gain);
    printf("8 kernels, two workers / two raw processes: %.3f\n", ours_parallel / raw_parallel);
    hdrt_runtime_destroy(one);
    hdrt_runtime_destroy(two);
    close(sockets[0]);
    close(sockets[1]);
    while (wait(NULL) > 0)
        continue;
    return 0;
}
