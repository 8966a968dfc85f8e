/* SPDX-License-Identifier: MIT */
/*
 * Hammer on the kernel cache: many processes compile and read the same kernels through one folder, with a stand-in
 * compiler of 1 to 20 ms, while a random one is killed with SIGKILL every 5 to 50 ms. Every byte that comes out is
 * compared with what the stand-in makes of its input. At the end nothing may be damaged, and nothing may be left behind
 * after a trim.
 *
 *     hammer FAKE_CC [--processes=16] [--kernels=64] [--rounds=40] [--kills=2000] [--reads=1000000] [--seed=N]
 *
 * A round begins with an empty folder. Prints one TAP line for each thing that must hold.
 */
#include <hdrt.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "fake_cc.h"
#include "jit/jit.h"
#include "jit/record.h"
#include "jit/sweep.h"

#define PROCESS_LIMIT 64

static unsigned processes = 16, kernels = 64, rounds = 40, kills = 2000;
static unsigned long reads_wanted = 1000000, seed = 1;
static char root[64], cache[96], compiler[128], prelude[128];
static char *worker;

/* What all processes count, in shared memory. */
static struct shared {
    atomic_ulong reads, wrong, failed, compiles_asked, alive_ns[PROCESS_LIMIT];
} *shared;

static unsigned long next_random(unsigned long *state)
{
    *state = *state * 6364136223846793005ul + 1442695040888963407ul;
    return *state >> 33;
}

static void source_of(unsigned round, unsigned kernel, char *out, size_t size)
{
    snprintf(out, size, "//delay %u\n// kernel %u of round %u\n", 1 + (kernel * 7 + round) % 20, kernel, round);
}

/* What the stand-in makes of the source: it digests, in the request's order, source, name, arch. */
static char *expected_code(const char *source, size_t *size)
{
    unsigned char digest[32];
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, sizeof digest);
    crypto_generichash_update(&state, (const unsigned char *)source, strlen(source));
    crypto_generichash_update(&state, (const unsigned char *)"hammer.cu", 9);
    crypto_generichash_update(&state, (const unsigned char *)"sm_80", 5);
    crypto_generichash_final(&state, digest, sizeof digest);
    return fake_code(digest, size);
}

static hdrt__jit *make_jit(void)
{
    hdrt__jit *jit;
    const hdrt__jit_config config = {.worker = worker, .recorder = worker, .prelude = prelude, .cache_dir = cache,
                                     .clang = compiler, .compile_workers = 2};
    return hdrt__jit_create(&config, &jit) == HDRT_OK ? jit : NULL;
}

static void check_kernel(hdrt__jit *jit, unsigned round, unsigned kernel)
{
    char text[128];
    size_t size;
    bool from_cache;
    hdrt__code *code;
    hdrt_source source = HDRT_SOURCE_INIT;
    const hdrt__target target = {.soft = true};
    source_of(round, kernel, text, sizeof text);
    source.text = text;
    source.name = "hammer.cu";
    if (hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache) != HDRT_OK) {
        if (atomic_fetch_add(&shared->failed, 1) < 3)
            fprintf(stderr, "# %s\n", hdrt_last_error());
        return;
    }
    char *expected = expected_code(text, &size);
    if (code->ptx_size != size || memcmp(code->ptx, expected, size) != 0)
        atomic_fetch_add(&shared->wrong, 1);
    atomic_fetch_add(&shared->reads, 1);
    if (!from_cache)
        atomic_fetch_add(&shared->compiles_asked, 1);
    free(expected);
    hdrt__code_drop(code);
}

/* Every entry of the folder as it is found: read, verified, compared; past the memory cache. */
static void read_entries(hdrt__store *store, const hdrt__digest *names, char *const *codes, const size_t *sizes)
{
    for (unsigned i = 0; i < kernels; i++) {
        hdrt_cache_reason reason;
        size_t size;
        unsigned char *bytes = hdrt__store_read(store, 0, &names[i], HDRT__ENTRY_IMAGE, &size, &reason);
        hdrt__code *code = bytes ? hdrt__code_read(bytes, size, &names[i], &reason) : NULL;
        if (code && (code->ptx_size != sizes[i] || memcmp(code->ptx, codes[i], sizes[i]) != 0))
            atomic_fetch_add(&shared->wrong, 1);
        if (!code && reason != HDRT_CACHE_NEW && reason != HDRT_CACHE_OFF)
            atomic_fetch_add(&shared->wrong, 1);
        if (code)
            atomic_fetch_add(&shared->reads, 1);
        hdrt__code_drop(code);
        free(bytes);
    }
}

struct names {
    hdrt__digest *names;
    unsigned at;
};

static hdrt_status take_name(void *context, const hdrt__request *request, const hdrt__digest *key)
{
    struct names *names = context;
    const hdrt__record none = {0};
    names->names[names->at] = hdrt__record_image(key, &none);
    return HDRT_OK;
}

static void find_names(hdrt__jit *jit, unsigned round, hdrt__digest *names)
{
    const hdrt__target target = {.soft = true};
    struct names found = {names, 0};
    for (; found.at < kernels; found.at++) {
        char text[128];
        hdrt_source source = HDRT_SOURCE_INIT;
        hdrt__input input;
        source_of(round, found.at, text, sizeof text);
        source.text = text;
        source.name = "hammer.cu";
        if (hdrt__input_read(&source, NULL, &input) != HDRT_OK ||
            hdrt__jit_request(jit, &input, &target, take_name, &found) != HDRT_OK)
            _exit(5);
        hdrt__input_free(&input);
    }
}

static void work(unsigned round, unsigned which, unsigned passes, unsigned long random)
{
    hdrt__jit *jit = make_jit();
    hdrt__digest *names = calloc(kernels, sizeof *names);
    char **codes = calloc(kernels, sizeof *codes);
    size_t *sizes = calloc(kernels, sizeof *sizes);
    if (!jit || !names || !codes || !sizes)
        _exit(5);
    find_names(jit, round, names);
    for (unsigned i = 0; i < kernels; i++) {
        char text[128];
        source_of(round, i, text, sizeof text);
        codes[i] = expected_code(text, &sizes[i]);
    }
    unsigned begin = (unsigned)next_random(&random) % kernels;
    for (unsigned i = 0; i < kernels; i++) {
        check_kernel(jit, round, (begin + i) % kernels);
        atomic_store(&shared->alive_ns[which], hdrt__now_ns());
    }
    for (unsigned pass = 0; pass < passes; pass++) {
        read_entries(hdrt__jit_store(jit), names, codes, sizes);
        atomic_store(&shared->alive_ns[which], hdrt__now_ns());
    }
    hdrt__jit_destroy(jit);
    _exit(0);
}

static pid_t start(unsigned round, unsigned which, unsigned passes, unsigned long *random)
{
    atomic_store(&shared->alive_ns[which], hdrt__now_ns());
    unsigned long own = next_random(random);
    pid_t child = fork();
    if (child == 0)
        work(round, which, passes, own);
    return child;
}

struct counts {
    unsigned killed, ended_badly, hung, left, bad;
};

/* One round: all processes start at once; those that are killed are started again. */
static void run_round(unsigned round, unsigned kills_of_round, unsigned passes, unsigned long *random,
                      struct counts *counts)
{
    pid_t children[PROCESS_LIMIT];
    unsigned running = processes, killed = 0;
    uint64_t next_kill = hdrt__now_ns();
    for (unsigned i = 0; i < processes; i++)
        children[i] = start(round, i, passes, random);
    while (running > 0) {
        uint64_t now = hdrt__now_ns();
        const struct timespec pause = {.tv_nsec = 1000000};
        if (now >= next_kill && killed < kills_of_round) {
            unsigned victim = (unsigned)next_random(random) % processes;
            if (children[victim] > 0 && kill(children[victim], SIGKILL) == 0) {
                killed++;
                waitpid(children[victim], NULL, 0);
                children[victim] = start(round, victim, passes, random);
            }
            next_kill = now + (5 + next_random(random) % 46) * 1000000u;
        }
        nanosleep(&pause, NULL);
        for (unsigned i = 0; i < processes; i++) {
            int status;
            if (children[i] > 0 && waitpid(children[i], &status, WNOHANG) == children[i]) {
                counts->ended_badly += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
                children[i] = killed < kills_of_round ? start(round, i, passes, random) : 0;
                running -= children[i] == 0;
            } else if (children[i] > 0 && now > atomic_load(&shared->alive_ns[i]) + UINT64_C(60000000000)) {
                counts->hung++;
                kill(children[i], SIGKILL);
            }
        }
    }
    counts->killed += killed;
}

struct leftover {
    unsigned temporaries, bad;
    const char *names;
};

static bool count_leftover(void *context, const hdrt__swept *file)
{
    struct leftover *leftover = context;
    leftover->temporaries += file->kind == HDRT_CACHE_TEMPORARY || file->kind == HDRT_CACHE_OTHER || !file->regular;
    if (file->kind != HDRT_CACHE_IMAGE)
        return true;
    hdrt_cache_reason reason;
    size_t size;
    unsigned char *bytes = hdrt__file_take(file->shard, file->name, HDRT__FOLDER_READ, HDRT__ENTRY_LIMIT, false, &size,
                                           &reason);
    hdrt__code *code = bytes ? hdrt__code_read(bytes, size, NULL, &reason) : NULL;
    leftover->bad += code == NULL;
    hdrt__code_drop(code);
    free(bytes);
    return true;
}

static void end_round(struct counts *counts)
{
    const hdrt__store_config config = {.directory = cache};
    hdrt__store *store;
    hdrt_cache_summary summary;
    struct leftover leftover = {0};
    if (hdrt__store_open(&config, &store) != HDRT_OK)
        exit(2);
    int folder = hdrt__store_root(store, 0, false);
    hdrt__sweep_trim(folder, UINT64_MAX - 1, 0, &summary);
    hdrt__sweep_walk(folder, HDRT__FOLDER_READ, count_leftover, &leftover);
    counts->left += leftover.temporaries;
    counts->bad += leftover.bad;
    hdrt__store_close(store);
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s", cache);
    if (system(command) != 0)
        exit(2);
}

static unsigned tests, failures;

static void result(bool good, const char *what)
{
    printf("%sok %u - %s\n", good ? "" : "not ", ++tests, what);
    failures += !good;
}

static void parse(int count, char **arguments)
{
    for (int i = 2; i < count; i++) {
        unsigned long number = strchr(arguments[i], '=') ? strtoul(strchr(arguments[i], '=') + 1, NULL, 10) : 0;
        if (strncmp(arguments[i], "--processes=", 12) == 0)
            processes = number < PROCESS_LIMIT ? (unsigned)number : PROCESS_LIMIT;
        else if (strncmp(arguments[i], "--kernels=", 10) == 0)
            kernels = (unsigned)number;
        else if (strncmp(arguments[i], "--rounds=", 9) == 0)
            rounds = (unsigned)number;
        else if (strncmp(arguments[i], "--kills=", 8) == 0)
            kills = (unsigned)number;
        else if (strncmp(arguments[i], "--reads=", 8) == 0)
            reads_wanted = number;
        else if (strncmp(arguments[i], "--seed=", 7) == 0)
            seed = number;
    }
}

int main(int count, char **arguments)
{
    struct counts counts = {0};
    char text[256];
    const char *built = getenv("HDRT_LIBEXEC");
    char beside[512];
    snprintf(beside, sizeof beside, "%s/tests/unit/support/fake_cc", built ? built : ".");
    worker = realpath(count > 1 && arguments[1][0] != '-' ? arguments[1] : beside, NULL);
    if (!worker) {
        fprintf(stderr, "hammer: there is no stand-in compiler: name it\n");
        return 2;
    }
    parse(count, arguments);
    if (!(count > 1)) { /* make check: the short form */
        processes = 6, kernels = 12, rounds = 2, kills = 40, reads_wanted = 10000;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(root, "/tmp/hdrt-test-hammer-XXXXXX");
    if (shared == MAP_FAILED || !mkdtemp(root) || sodium_init() < 0)
        return 2;
    snprintf(cache, sizeof cache, "%s/cache", root);
    snprintf(compiler, sizeof compiler, "%s/clang", root);
    snprintf(prelude, sizeof prelude, "%s/prelude", root);
    mkdir(prelude, 0700);
    close(open(compiler, O_WRONLY | O_CREAT, 0700));
    printf("# seed %lu\n1..5\n", seed);
    fflush(stdout);
    unsigned long random = seed;
    unsigned long expected_runs = (unsigned long)processes * rounds;
    unsigned passes = (unsigned)(reads_wanted / (expected_runs * kernels) + 1);
    for (unsigned round = 0; round < rounds; round++) {
        unsigned of_round = kills / rounds + (round < kills % rounds);
        run_round(round, of_round, passes, &random, &counts);
        end_round(&counts);
    }
    snprintf(text, sizeof text, "%lu reads, none with a wrong byte (%lu wrong)", atomic_load(&shared->reads),
             atomic_load(&shared->wrong));
    result(atomic_load(&shared->wrong) == 0 && atomic_load(&shared->reads) >= reads_wanted, text);
    snprintf(text, sizeof text, "every compile returns its code (%lu did not; %u processes ended otherwise)",
             atomic_load(&shared->failed), counts.ended_badly);
    result(atomic_load(&shared->failed) == 0 && counts.ended_badly == 0, text);
    snprintf(text, sizeof text, "%u processes killed", counts.killed);
    result(counts.killed >= kills, text);
    snprintf(text, sizeof text, "no process hangs (%u did)", counts.hung);
    result(counts.hung == 0, text);
    snprintf(text, sizeof text, "nothing damaged (%u) and nothing left (%u) after a trim", counts.bad, counts.left);
    result(counts.bad == 0 && counts.left == 0, text);
    snprintf(text, sizeof text, "rm -rf %s", root);
    if (system(text) != 0)
        return 2;
    free(worker);
    return failures && count > 1; /* in make check TAP tells it */
}
