/* SPDX-License-Identifier: MIT */
/*
 * Code: an image is parsed PTX, shared; a module is an image with its variables in one device's memory; a library is
 * an image that becomes a module in each context that asks. All under the driver's lock, but for loading itself.
 */
#ifndef HDSOFT_MODEL_MODULE_H
#define HDSOFT_MODEL_MODULE_H

#include "soft/model/driver.h"

typedef struct CUlib_st hdsoft__library;
typedef struct CUkern_st hdsoft__kernel;

typedef struct hdsoft__image {
    unsigned references;
    unsigned target;          /* of the PTX: 70 for sm_70 */
    uint32_t constant_bytes;
    hdsoft_program *program;
    struct hdsoft__lines *lines; /* for reports, once asked for; NULL: none yet */
} hdsoft__image;

struct CUfunc_st {
    hdsoft__module *module;
    const hdsoft_entry *entry;
    int dynamic_limit;        /* MAX_DYNAMIC_SHARED_SIZE_BYTES */
    int carveout;
    int cluster[3], non_portable_cluster, cluster_policy;
    bool loaded;
};

struct CUmod_st {
    hdsoft__context *context;
    hdsoft__module *next, *previous;
    hdsoft__image *image;
    hdsoft_instance *instance;
    hdsoft__library *library; /* whose it is; NULL: loaded by cuModuleLoad... */
    unsigned references;      /* its owner and every task that runs a function */
    bool unloaded;
    uint64_t birth;
    const hdsoft__site *made;
    hdsoft__function *functions;
    size_t function_count;
};

struct CUkern_st {
    hdsoft__library *library;
    const hdsoft_entry *entry;
    size_t index;
    int dynamic_limit, carveout; /* for the functions that it becomes; -1: as they are */
};

struct CUlib_st {
    hdsoft__image *image; /* NULL: it could not be parsed */
    int broken;           /* and so says whoever wants something of it */
    hdsoft__kernel *kernels;
    size_t kernel_count;
};

/* Look at an image as cuModuleLoadData gets it, a bare pointer, and parse it. Not locked. 0, 200, 209, 218, 222, 2. */
int hdsoft__image_parse(const void *bytes, hdsoft__image **out, hdsoft_text *log);
void hdsoft__image_release(hdsoft__image *image);                                                /* NULL is fine */
/* Takes over a reference of the image, in failure too. */
int hdsoft__module_create(hdsoft__context *context, hdsoft__image *image, hdsoft__library *library,
                          hdsoft__module **out, hdsoft_text *log);
void hdsoft__module_unload(hdsoft__module *module);
void hdsoft__module_release(hdsoft__module *module);
/* Takes the image over; NULL: a library of code that could not be parsed, for the reason `broken`. */
int hdsoft__library_create(hdsoft__image *image, int broken, hdsoft__library **out);
void hdsoft__library_unload(hdsoft__library *library);
/* The library's module in a context, made on first use. */
int hdsoft__library_module(hdsoft__library *library, hdsoft__context *context, hdsoft__module **out);
/* What may be launched as `handle`: a function, or a library's kernel in the current context. 0, 400, 201 ... */
int hdsoft__function_of(hdcu_function handle, hdsoft__function **out);

#endif
