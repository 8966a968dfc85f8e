/* SPDX-License-Identifier: MIT */
/*
 * Warm start: how long a fresh process takes from hdrt_module_compile to a kernel handle when the cache has the
 * kernel. For each case, a first process fills the cache; the fastest of many later ones counts. Each checks that the
 * code came from the cache, that no compile worker was started and that no NVRTC is mapped.
 *
 *     warm [--driver=soft|cuda] [--processes=N] [--detail]
 *
 * Prints measured and permitted milliseconds; exits with 1 if a limit is passed on the soft driver.
 */
#include <hdrt.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEADERS 600

static const struct {
    const char *name;
    unsigned headers, folders;
    double limit_ms;
} cases[] = {
    {"no header", 0, 0, 0.3},
    {"600 headers, 1 -I folder", HEADERS, 1, 1.0},
    {"600 headers, 3 -I folders", HEADERS, 3, 1.5},
};

#define CASES (sizeof cases / sizeof cases[0])

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void fail(const char *what)
{
    fprintf(stderr, "warm: %s: %s\n", what, hdrt_last_error());
    exit(2);
}

/* ---- what the cases compile ------------------------------------------------------------------------------------- */

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

/* A third of the headers lies in each folder where there are three; each is looked for in all folders before its own. */
static void make_files(const char *root, unsigned which)
{
    char folder[300], name[64], text[256];
    size_t size = HEADERS * 40 + 256;
    char *source = calloc(1, size);
    snprintf(folder, sizeof folder, "%s/%u", root, which);
    mkdir(folder, 0700);
    for (unsigned i = 0; i < cases[which].folders; i++) {
        snprintf(folder, sizeof folder, "%s/%u/include%u", root, which, i);
        mkdir(folder, 0700);
    }
    for (unsigned i = 0; i < cases[which].headers; i++) {
        snprintf(folder, sizeof folder, "%s/%u/include%u", root, which, i % cases[which].folders);
        snprintf(name, sizeof name, "header_%03u.h", i);
        snprintf(text, sizeof text, "#pragma once\n#define VALUE_%u %u\n__device__ inline int f%u(int x) { return x + %u; }\n",
                 i, i, i, i);
        write_text(folder, name, text);
        snprintf(source + strlen(source), size - strlen(source), "#include \"%s\"\n", name);
    }
    strcat(source, "extern \"C\" __global__ void kernel(float *p, float a, int n)\n{\n"
                   "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        p[i] = a * p[i];\n}\n");
    snprintf(folder, sizeof folder, "%s/%u", root, which);
    write_text(folder, "kernel.cu", source);
    free(source);
}

/* ---- one fresh process ------------------------------------------------------------------------------------------ */

static bool nvrtc_is_mapped(void)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found = found || strstr(line, "libnvrtc");
    if (maps)
        fclose(maps);
    return found;
}

/* Any process of this one's session but itself: a worker has a session of its own, so children are asked for. */
static bool has_children(void)
{
    char path[64], text[16] = "";
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *file = fopen(path, "r");
    bool any = file && fgets(text, sizeof text, file) && text[0];
    if (file)
        fclose(file);
    return any;
}

/* The time goes to standard output; `fill`: the cache need not have it yet. */
static int measure(const char *root, unsigned which, const char *driver, bool fill)
{
    char path[300], cache[300], folders[3][320];
    const char *options[3];
    hdrt_runtime *runtime;
    hdrt_device *device;
    hdrt_module *module;
    hdrt_kernel *kernel;
    hdrt_runtime_options runtime_options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_compile_options compile_options = HDRT_COMPILE_OPTIONS_INIT;
    hdrt_source source = HDRT_SOURCE_INIT;
    snprintf(cache, sizeof cache, "%s/cache", root);
    snprintf(path, sizeof path, "%s/%u/kernel.cu", root, which);
    for (unsigned i = 0; i < cases[which].folders; i++) {
        snprintf(folders[i], sizeof folders[i], "-I%s/%u/include%u", root, which, i);
        options[i] = folders[i];
    }
    runtime_options.driver = strcmp(driver, "cuda") == 0 ? HDRT_DRIVER_CUDA : HDRT_DRIVER_SOFT;
    runtime_options.cache_dir = cache;
    compile_options.options = options;
    compile_options.option_count = cases[which].folders;
    source.path = path;
    if (hdrt_runtime_create(&runtime_options, &runtime) != HDRT_OK || hdrt_device_open(runtime, 0, NULL, &device) != HDRT_OK)
        fail("no device");
    double began = now_ms();
    if (hdrt_module_compile(device, &source, &compile_options, &module) != HDRT_OK)
        fail("compile");
    double compiled = now_ms();
    if (hdrt_module_kernel(module, "kernel", &kernel) != HDRT_OK)
        fail("kernel");
    double ended = now_ms();
    bool warm = hdrt_module_from_cache(module) && !has_children() && !nvrtc_is_mapped();
    hdrt_module_destroy(module);
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
    printf("%.4f %.4f\n", ended - began, ended - compiled);
    return warm || fill ? 0 : 3;
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static double run_fresh(const char *self, const char *root, unsigned which, const char *driver, const char *mode)
{
    char command[1024];
    double total = 0, kernel = 0;
    snprintf(command, sizeof command, "'%s' --in='%s' --case=%u --driver=%s %s", self, root, which, driver, mode);
    FILE *output = popen(command, "r");
    int read = output ? fscanf(output, "%lf %lf", &total, &kernel) : 0;
    int status = output ? pclose(output) : -1;
    if (read != 2 || status != 0) {
        fprintf(stderr, "warm: '%s': a process ended with %d%s\n", cases[which].name, status,
                WIFEXITED(status) && WEXITSTATUS(status) == 3 ? ": it was not warm" : "");
        exit(2);
    }
    return total;
}

static int run_all(const char *self, const char *driver, unsigned processes, bool detail)
{
    char root[] = "/tmp/hdrt-bench-warm-XXXXXX", command[64];
    int result = 0;
    if (!mkdtemp(root)) {
        perror(root);
        return 2;
    }
    for (unsigned which = 0; which < CASES; which++)
        make_files(root, which);
    sleep(3); /* files that are younger than the step of file times are read again each time, as they should be */
    for (unsigned which = 0; which < CASES; which++) {
        double cold = run_fresh(self, root, which, driver, "--fill"), best = 1e9, worst = 0;
        for (unsigned i = 0; i < processes; i++) {
            double took = run_fresh(self, root, which, driver, "");
            best = took < best ? took : best;
            worst = took > worst ? took : worst;
        }
        bool good = best <= cases[which].limit_ms;
        printf("%-28s %8.3f ms  limit %.1f ms  %s", cases[which].name, best, cases[which].limit_ms,
               good ? "within" : "OVER");
        if (detail)
            printf("  (slowest of %u: %.3f; cold: %.1f)", processes, worst, cold);
        printf("\n");
        if (!good && strcmp(driver, "soft") == 0)
            result = 1;
    }
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? result : 2;
}

int main(int count, char **arguments)
{
    const char *driver = "soft", *root = NULL;
    unsigned processes = 20, which = CASES;
    bool detail = false, fill = false;
    for (int i = 1; i < count; i++) {
        if (strncmp(arguments[i], "--driver=", 9) == 0)
            driver = arguments[i] + 9;
        else if (strncmp(arguments[i], "--processes=", 12) == 0)
            processes = (unsigned)atoi(arguments[i] + 12);
        else if (strncmp(arguments[i], "--in=", 5) == 0)
            root = arguments[i] + 5;
        else if (strncmp(arguments[i], "--case=", 7) == 0)
            which = (unsigned)atoi(arguments[i] + 7);
        else if (strcmp(arguments[i], "--fill") == 0)
            fill = true;
        else if (strcmp(arguments[i], "--detail") == 0)
            detail = true;
        else {
            fprintf(stderr, "usage: warm [--driver=soft|cuda] [--processes=N] [--detail]\n");
            return 2;
        }
    }
    if (root && which < CASES)
        return measure(root, which, driver, fill);
    char self[512];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size < 0)
        return 2;
    self[size] = '\0';
    return run_all(self, driver, processes, detail);
}
