/* SPDX-License-Identifier: MIT */
/*
 * Random programs give the result of the model under every configuration and policy: 20,000 seeds with HDRT_STRESS=all,
 * each once with elision none and once with another. `test_graphs BATCH` repeats one.
 */
#include "batches.h"
#include "execute.h"

#define SEEDS 20u /* in a batch */

typedef struct configuration {
    const char *elision, *recording, *templates, *streams;
    hdrt_submission submission;
    char policy[64];
    bool narrow; /* rings may be */
    bool race;
    char name[256];
} configuration;

static void configure(configuration *c, uint64_t batch)
{
    static const char *const elisions[] = {"stream", "pairwise", "transitive", "transitive"};
    static const char *const streams[] = {"8", "8", "8", "1", "2", "3"};
    uint64_t random = batch * 77 + 5, draw = program_random(&random);
    memset(c, 0, sizeof *c);
    c->elision = batch & 1 ? elisions[draw % 4] : "none";
    c->recording = draw >> 4 & 3 ? "flagged" : "eager";
    c->templates = draw >> 8 & 3 ? "on" : "off";
    c->streams = streams[(draw >> 12) % 6];
    c->submission = (hdrt_submission)((draw >> 20) % 3);
    uint32_t policy = (uint32_t)(draw >> 24) % 8;
    c->race = (draw >> 32) % 8 == 0;
    c->narrow = policy == 2 || policy == 3;
    /* Who waits for a host call, or for room in a ring, is in no call of the driver's: so work goes on by itself. */
    if (policy < 2) {
        snprintf(c->policy, sizeof c->policy, "lazy:patience=30");
    } else if (policy == 2) {
        snprintf(c->policy, sizeof c->policy, "eager");
    } else {
        snprintf(c->policy, sizeof c->policy, "random:%llu,patience=%d", (unsigned long long)batch + 1, c->narrow ? 3 : 10);
    }
    snprintf(c->name, sizeof c->name, "batch %llu, elision %s, recording %s, templates %s, streams %s, submission %d, %s%s",
             (unsigned long long)batch, c->elision, c->recording, c->templates, c->streams, (int)c->submission, c->policy,
             c->race ? ", race" : "");
}

static void run_batch(uint64_t batch)
{
    static program_graph program;
    static program_result result, expected;
    configuration c;
    bed b;
    configure(&c, batch);
    setenv("HDRT_ELISION", c.elision, 1);
    setenv("HDRT_RECORDING", c.recording, 1);
    setenv("HDRT_TEMPLATES", c.templates, 1);
    setenv("HDRT_STREAMS", c.streams, 1);
    setenv("HDRT_DISPATCHERS", batch / 2 % 2 ? "2" : "1", 1);
    setenv("HDSOFT_POLICY", c.policy, 1);
    setenv("HDSOFT_DEVICES", "2", 1);
    setenv("HDSOFT_CHECK", c.race ? "race" : "", 1);
    bed_open(&b, PROGRAM_DEVICES);
    b.submission = c.submission;
    program_options options = {.may_block = c.narrow};
    for (uint64_t seed = batch / 2 * SEEDS; seed < (batch / 2 + 1) * SEEDS; seed++) {
        program_generate(&program, seed, &options);
        program_start(&expected, seed, b.device_count);
        program_model(&program, &expected);
        if (getenv("HDRT_STRESS_TELL")) {
            char words[160];
            fprintf(stderr, "# seed %llu: %u operations, %s\n", (unsigned long long)seed, program.op_count, c.name);
            for (uint32_t i = 0; i < program.op_count; i++) {
                fprintf(stderr, "#   %s\n", program_describe(&program, i, words));
            }
        }
        bed_execute(&b, &program, &result, NULL, NULL);
        if (!bed_compare(&program, &result, &expected, c.name)) {
            exit(1);
        }
    }
    if (c.race) {
        unsigned long long (*count)(void);
        bed_symbol(&b, "hdsoft_report_count", &count);
        if (count()) {
            bed_fail("%s: %llu races", c.name, count());
        }
    }
    bed_close(&b);
}

int main(int argc, char **argv)
{
    struct timespec start;
    char name[128];
    clock_gettime(CLOCK_MONOTONIC, &start);
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : stress_whole() ? 2000 : 40;
    puts("1..1");
    bool good = batches_run(first, count, run_batch) == 0;
    snprintf(name, sizeof name, "%llu seeds of random programs, twice each, as the model says",
             (unsigned long long)(count * SEEDS / 2));
    tap(1, good, name);
    printf("# %.1f s\n", seconds_since(&start));
    return 0;
}
