/* SPDX-License-Identifier: MIT */
#include "hdrt_bench.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: hdrt-bench [OPTION]... [NAME]...\n"
    "Measure the library against the raw driver, in one process and run.\n\n"
    "NAMEs, all if there is none: launch, wait, queues, latency, threads, copies\n\n"
    "  --json                 print JSON instead of a table\n"
    "  --check                exit 1 if a requirement is missed\n"
    "  --smoke                tiny sizes: only whether everything works\n"
    "  --rounds=N             rounds of each measurement (default 15)\n"
    "  --driver=cuda|soft     (default: HDRT_DRIVER, else cuda)\n"
    "  --submission=auto|inline|dispatcher   of the queues (default auto)\n"
    "  --help\n\n"
    "Every value that a kernel should have written is verified after the timed part; a wrong one is an error.\n";

static const struct {
    const char *name;
    void (*run)(struct bench *b);
} benchmarks[] = {
    {"launch", bench_launches}, {"wait", bench_waits},       {"queues", bench_queues},
    {"latency", bench_latency}, {"threads", bench_threads},  {"copies", bench_copies},
};
#define BENCHMARKS (sizeof benchmarks / sizeof benchmarks[0])

void bench_fail(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fputs("hdrt-bench: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

double bench_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(double *samples, unsigned count, double quantile)
{
    qsort(samples, count, sizeof *samples, compare_doubles);
    return samples[(unsigned)((count - 1) * quantile)];
}

void bench_compare(struct bench *b, struct bench_row row, unsigned warm, bench_round ours, bench_round raw,
                   const void *argument)
{
    double our_samples[64], raw_samples[64], quotients[64];
    for (unsigned i = 0; i < warm; i++) {
        ours(b, argument);
        raw(b, argument);
    }
    for (unsigned i = 0; i < b->rounds; i++) {
        if (i % 2) {
            raw_samples[i] = raw(b, argument);
            our_samples[i] = ours(b, argument);
        } else {
            our_samples[i] = ours(b, argument);
            raw_samples[i] = raw(b, argument);
        }
        quotients[i] = our_samples[i] / raw_samples[i];
    }
    row.ours = bench_quantile(our_samples, b->rounds, 0.5);
    row.raw = bench_quantile(raw_samples, b->rounds, 0.5);
    bench_add(b, row);
    b->quotients[b->row_count - 1] = bench_quantile(quotients, b->rounds, 0.5);
}

double bench_measure(struct bench *b, unsigned warm, bench_round round, const void *argument)
{
    double samples[64];
    for (unsigned i = 0; i < warm; i++) {
        round(b, argument);
    }
    for (unsigned i = 0; i < b->rounds; i++) {
        samples[i] = round(b, argument);
    }
    return bench_quantile(samples, b->rounds, 0.5);
}

hdrt_queue *bench_queue(struct bench *b, bool exclusive, uint32_t ring_limit)
{
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.submission = b->submission;
    options.exclusive = exclusive;
    options.ring_limit = ring_limit;
    HDRT(hdrt_queue_create(b->device, &options, &queue));
    return queue;
}

struct CUstream_st *bench_stream(struct bench *b)
{
    struct CUstream_st *stream;
    RAW(cuStreamCreate(&stream, BENCH_STREAM_NON_BLOCKING));
    return stream;
}

void bench_clear(struct bench *b, size_t count)
{
    if (b->alone) {
        hdrt_queue *queue = hdrt_device_default_queue(b->device);
        HDRT(hdrt_fill(queue, b->words, "\xee", 1, count * sizeof(uint32_t)));
        HDRT(hdrt_queue_synchronize(queue));
        return;
    }
    RAW(cuMemsetD8(b->words, BENCH_UNWRITTEN & 0xff, count * sizeof(uint32_t)));
    RAW(cuStreamSynchronize(NULL));
}

void bench_read(struct bench *b, size_t count)
{
    RAW(cuMemcpyDtoH(b->read, b->words, count * sizeof(uint32_t)));
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

void bench_add(struct bench *b, struct bench_row row)
{
    if (b->row_count == sizeof b->rows / sizeof b->rows[0]) {
        bench_fail("more rows than there is room for");
    }
    b->rows[b->row_count++] = row;
    if (!b->smoke) {
        fprintf(stderr, "%s: %.4g, raw %.4g %s\n", row.measure, row.ours, row.raw, row.unit); /* it takes minutes */
    }
}

static double ratio_of(const struct bench *b, const struct bench_row *row)
{
    if (row->raw == 0 || row->ours == 0) {
        return 0;
    }
    double pairs = b->quotients[row - b->rows], quotient = pairs != 0 ? pairs : row->ours / row->raw;
    return row->rule == BENCH_TIMES_BELOW ? 1 / quotient : quotient;
}

static bool is_met(const struct bench *b, const struct bench_row *row)
{
    switch (row->rule) {
    case BENCH_TIMES_BELOW:
    case BENCH_AT_LEAST: return ratio_of(b, row) >= row->limit;
    case BENCH_AT_MOST: return ratio_of(b, row) <= row->limit;
    case BENCH_VALUE: return row->ours <= row->limit;
    default: return true;
    }
}

static void describe(const struct bench_row *row, char *text, size_t size)
{
    static const char *const words[] = {"", "%.4g times below", "ratio <= %.4g", "ratio >= %.4g", "<= %.4g"};
    snprintf(text, size, words[row->rule], row->limit);
}

static void print_table(const struct bench *b)
{
    printf("%-58s %10s %10s %-5s %8s  %-16s %s\n", "measure", "ours", "raw", "unit", "ratio", "required", "ok");
    for (unsigned i = 0; i < b->row_count; i++) {
        const struct bench_row *row = &b->rows[i];
        char required[48], raw[24] = "-", ratio[24] = "-";
        describe(row, required, sizeof required);
        if (row->raw != 0) {
            snprintf(raw, sizeof raw, "%.5g", row->raw);
            snprintf(ratio, sizeof ratio, "%.3f", ratio_of(b, row));
        }
        printf("%-58s %10.5g %10s %-5s %8s  %-16s %s\n", row->measure, row->ours, raw, row->unit, ratio, required,
               b->smoke || row->rule == BENCH_SHOWN ? "" : is_met(b, row) ? "yes" : "NO");
    }
}

static void print_string(const char *key, const char *value, const char *after)
{
    printf("\"%s\": \"", key);
    for (; *value; value++) {
        printf(*value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
    }
    printf("\"%s", after);
}

static void print_json(struct bench *b)
{
    hdrt_runtime_info runtime = HDRT_RUNTIME_INFO_INIT;
    hdrt_device_info device = HDRT_DEVICE_INFO_INIT;
    HDRT(hdrt_runtime_get_info(b->runtime, &runtime));
    HDRT(hdrt_device_get_info(b->device, &device));
    printf("{");
    printf("\"version\": %u, ", hdrt_version());
    print_string("device", device.name, ", ");
    printf("\"driver_version\": %u, \"smoke\": %s, \"rows\": [", runtime.driver_version, b->smoke ? "true" : "false");
    for (unsigned i = 0; i < b->row_count; i++) {
        const struct bench_row *row = &b->rows[i];
        char required[48];
        describe(row, required, sizeof required);
        printf("%s\n  {", i ? "," : "");
        print_string("measure", row->measure, ", ");
        print_string("unit", row->unit, ", ");
        printf("\"ours\": %.6g, \"raw\": ", row->ours);
        printf(row->raw != 0 ? "%.6g, \"ratio\": " : "null, \"ratio\": ", row->raw);
        printf(row->raw != 0 ? "%.6g, " : "null, ", ratio_of(b, row));
        print_string("required", required, ", ");
        printf("\"ok\": %s}", row->rule == BENCH_SHOWN || b->smoke ? "null" : is_met(b, row) ? "true" : "false");
    }
    printf("\n]}\n");
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

struct settings {
    hdrt_driver_kind driver;
    bool json, check;
    bool chosen[BENCHMARKS];
};

static void *open_symbol(struct bench *b, const char *symbol)
{
    void *address = hdrt_runtime_driver_symbol(b->runtime, symbol);
    if (!address) {
        bench_fail("this driver has no %s", symbol);
    }
    return address;
}

static void open_device(struct bench *b, const struct settings *settings)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = settings->driver;
    options.cache_dir = "";
    HDRT(hdrt_runtime_create(&options, &b->runtime));
    HDRT(hdrt_device_open(b->runtime, 0, NULL, &b->device));
#define BENCH_RAW_OPEN(name, symbol, parameters) *(void **)&b->cu.name = open_symbol(b, symbol);
    BENCH_RAW(BENCH_RAW_OPEN)
#undef BENCH_RAW_OPEN
    RAW(cuCtxSetCurrent(hdrt_device_context(b->device)));
    b->word_count = bench_size(b, 1000000, 20000);
    b->read = malloc(b->word_count * sizeof *b->read);
    if (!b->read) {
        bench_fail("no memory for %zu words", b->word_count);
    }
    RAW(cuMemAlloc(&b->words, b->word_count * sizeof(uint32_t)));
    bench_load_kernels(b);
}

static void close_device(struct bench *b)
{
    RAW(cuMemFree(b->words));
    free(b->read);
    hdrt_module_destroy(b->module);
    hdrt_device_close(b->device);
    hdrt_runtime_destroy(b->runtime);
}

static int choice(const char *option, const char *value, const char *const *names)
{
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], value) == 0) {
            return i;
        }
    }
    bench_fail("--%s=%s: there is no such; --help lists them", option, value);
}

static void read_names(struct settings *settings, char **names, int count)
{
    for (size_t i = 0; i < BENCHMARKS; i++) {
        settings->chosen[i] = count == 0;
    }
    for (int n = 0; n < count; n++) {
        size_t i = 0;
        while (i < BENCHMARKS && strcmp(names[n], benchmarks[i].name) != 0) {
            i++;
        }
        if (i == BENCHMARKS) {
            bench_fail("there is no benchmark '%s': launch, wait, queues, latency, threads, copies", names[n]);
        }
        settings->chosen[i] = true;
    }
}

static void read_options(struct bench *b, struct settings *settings, int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},         {"check", no_argument, NULL, 'c'},
        {"smoke", no_argument, NULL, 's'},        {"rounds", required_argument, NULL, 'r'},
        {"driver", required_argument, NULL, 'd'}, {"submission", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    static const char *const drivers[] = {"cuda", "soft", NULL};
    static const char *const submissions[] = {"auto", "inline", "dispatcher", NULL};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'j': settings->json = true; break;
        case 'c': settings->check = true; break;
        case 's': b->smoke = true; break;
        case 'r': b->rounds = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'd': settings->driver = choice("driver", optarg, drivers) ? HDRT_DRIVER_SOFT : HDRT_DRIVER_CUDA; break;
        case 'm': b->submission = (hdrt_submission)choice("submission", optarg, submissions); break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fputs(usage, stderr); exit(2);
        }
    }
    if (b->rounds < 1 || b->rounds > 64) {
        bench_fail("--rounds: 1 to 64");
    }
    read_names(settings, argv + optind, argc - optind);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.rounds = 15};
    struct settings settings = {0};
    bool met = true;
    read_options(&bench, &settings, argc, argv);
    if (bench.smoke) {
        bench.rounds = 1;
    }
    open_device(&bench, &settings);
    for (size_t i = 0; i < BENCHMARKS; i++) {
        if (settings.chosen[i]) {
            benchmarks[i].run(&bench);
        }
    }
    for (unsigned i = 0; i < bench.row_count; i++) {
        met = met && is_met(&bench, &bench.rows[i]);
    }
    if (settings.json) {
        print_json(&bench);
    } else {
        print_table(&bench);
    }
    close_device(&bench);
    if (fflush(stdout) != 0) {
        return 2;
    }
    return settings.check && !bench.smoke && !met ? 1 : 0;
}
