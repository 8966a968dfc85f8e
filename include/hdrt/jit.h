/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt/jit.h
 * Modules and kernels: compiling source, the kernel cache, loading images, kernel tables.
 *
 * Compiles run in another process (hdrt-cc), never in the caller's; its crash, hang or hunger is a status here. Images
 * are cached on disk by everything that can change them: source, name, options, target, compiler and the contents of
 * every header read. A program whose kernels are all cached starts no compiler.
 */
#ifndef HDRT_JIT_H
#define HDRT_JIT_H

#ifndef HDRT_H
#error "include <hdrt.h>, not its parts"
#endif

/** Kernel source: a file, or bytes in memory. */
typedef struct hdrt_source {
    size_t size;             /**< sizeof(hdrt_source) */
    const char *path;        /**< read this file (and resolve its quoted includes from its folder), or NULL */
    const char *text;        /**< the source itself if path is NULL */
    size_t length;           /**< bytes of text; 0: up to its NUL */
    const char *name;        /**< name in diagnostics and __FILE__; NULL: path, or "source.cu" */
    const char *const *header_names; /**< in-memory headers, see below; NULL: none */
    const char *const *header_texts; /**< the text of each, up to its NUL */
    uint32_t header_count;           /**< how many */
    uint32_t reserved;       /**< zero */
} hdrt_source;

#define HDRT_SOURCE_INIT HDRT_INIT_(hdrt_source)

/*
 * In-memory headers are found by #include "NAME" and <NAME>, and by __has_include, before the folders of -I and beside
 * the source. A name is relative, without "." and ".." in it, at most 1,024 bytes; a header that includes another one
 * gives its whole name. Names and texts are part of the cache key, nothing is written to a disk but into the cache.
 */

/** Which compiler. */
typedef enum hdrt_compiler {
    HDRT_COMPILER_AUTO = 0,  /**< clang for the soft driver; else NVRTC, else clang */
    HDRT_COMPILER_NVRTC = 1, /**< NVRTC; its output is for NVIDIA GPUs only: an error on the soft driver */
    HDRT_COMPILER_CLANG = 2, /**< clang with libhdrt's device prelude */
} hdrt_compiler;

/** What kind of code. */
typedef enum hdrt_code_kind {
    HDRT_CODE_AUTO = 0,  /**< cubin from NVRTC for the device, PTX from clang */
    HDRT_CODE_PTX = 1,   /**< PTX */
    HDRT_CODE_CUBIN = 2, /**< cubin: NVRTC only */
    HDRT_CODE_LTO_IR = 3, /**< NVIDIA's intermediate code for hdrt_image_link: NVRTC 12 or newer; cannot be loaded */
} hdrt_code_kind;

/** Options of a compile. Start from HDRT_COMPILE_OPTIONS_INIT. */
typedef struct hdrt_compile_options {
    size_t size;                  /**< sizeof(hdrt_compile_options) */
    hdrt_compiler compiler;       /**< which compiler */
    hdrt_code_kind kind;          /**< what to make */
    const char *arch;             /**< "sm_90", "sm_90a"; NULL: the device's, lowered to what the compiler knows */
    const char *const *options;   /**< NVRTC spelling: -I -D -U -std= -lineinfo -G --use_fast_math --maxrregcount= ... */
    uint32_t option_count;        /**< how many */
    uint32_t time_limit_ms;       /**< from when a worker has it; 0: 60,000; HDRT_ERROR_COMPILE_LIMIT past it */
    uint64_t memory_limit_bytes;  /**< address space of the compiler; 0: 8 GiB; ignored in sanitizer builds */
    const char *const *names;     /**< name expressions, see below; NULL: none */
    uint32_t name_count;          /**< how many */
    bool no_cache;                /**< neither look up nor store */
    bool lower_arch;              /**< `arch` may be lowered to the highest that the compiler knows; info.note says so */
    bool lazy;                    /**< load a module's kernels when first asked for, see hdrt_module_preload */
    bool reserved_flag;           /**< false */
    uint32_t reserved[8];         /**< zero */
} hdrt_compile_options;

#define HDRT_COMPILE_OPTIONS_INIT HDRT_INIT_(hdrt_compile_options)

/*
 * Name expressions are C++ expressions that name a kernel or the address of a variable: "ns::scale<float, 4>",
 * "&ns::table". They make the compiler instantiate templates, and hdrt_module_kernel and hdrt_module_global find what
 * came of it by the expression, byte for byte as it was given here ("&" may be left out there). One that the source
 * does not know fails the compile (HDRT_ERROR_COMPILE). A lambda has no name, but its type can be had from a device
 * function that returns it: "apply<decltype(ns::twice())>".
 */

/** How grave a diagnostic is. */
typedef enum hdrt_severity {
    HDRT_SEVERITY_NOTE = 1,
    HDRT_SEVERITY_WARNING = 2,
    HDRT_SEVERITY_ERROR = 3,
} hdrt_severity;

/** One message of a compiler. */
typedef struct hdrt_diagnostic {
    const char *file;       /**< NULL: none */
    uint32_t line, column;  /**< from 1; 0: not known */
    hdrt_severity severity;
    const char *text;       /**< one line or more */
} hdrt_diagnostic;

/** Compiled code: image, kernel table, log. Immutable; belongs to the caller until hdrt_image_destroy. */
typedef struct hdrt_image hdrt_image;

/** What an image is. Strings and bytes belong to the image. */
typedef struct hdrt_image_info {
    size_t size;                /**< set by the caller to sizeof(hdrt_image_info) */
    hdrt_code_kind kind;        /**< PTX or CUBIN: what `code` is */
    const void *code;           /**< the code; PTX is NUL-terminated, the NUL not counted */
    size_t code_size;           /**< bytes */
    const char *ptx;            /**< PTX kept beside a cubin, NULL if none */
    size_t ptx_size;            /**< bytes, NUL not counted */
    const char *arch;           /**< what it was compiled for */
    hdrt_compiler compiler;     /**< NVRTC or CLANG; AUTO: not known */
    const char *compiler_path;  /**< its file */
    const char *log;            /**< all that the compiler said, "" if nothing; also on a cache hit */
    bool from_cache;            /**< no compiler ran */
    const char *note;           /**< e.g. the target was lowered, and why; NULL: nothing to say */
    const char *compiler_version; /**< "NVRTC 13.0", "clang 19.1.7", "nvJitLink 13.0"; "" if not known */
    uint32_t kernel_count;      /**< see hdrt_image_kernel */
    uint32_t dependency_count;  /**< see hdrt_image_dependency */
    const char *source_name;    /**< name of the source, "" if not known */
    const char *options;        /**< options of the compile, separated by blanks, "" if none or not known */
    hdrt_cache_reason cache_reason; /**< HDRT_CACHE_HIT, or why a compiler ran */
    const char *cache_words;    /**< what that reason is about: a path, an option; "": nothing to say */
    const char *command;        /**< what the compiler was called with: its path and options, quoted for a shell where
                                     that is needed; "" if not known. Files in /proc/self/fd are the worker's own */
} hdrt_image_info;

#define HDRT_IMAGE_INFO_INIT HDRT_INIT_(hdrt_image_info)

/**
 * Compile without a device, e.g. to write the code to a file.
 *
 * \param runtime  its options say where compilers and cache are; its driver may be HDRT_DRIVER_NONE.
 *     The target without options->arch is sm_80 here.
 * \param out_image  on success the image; on HDRT_ERROR_COMPILE an image without code that has the log and the
 *     diagnostics; else NULL
 * \return HDRT_OK; HDRT_ERROR_COMPILE  the source has errors: hdrt_last_error begins with the first one as
 *     "file:line:column: text"; HDRT_ERROR_NO_COMPILER  the message says what was looked for and where;
 *     HDRT_ERROR_COMPILER_CRASHED, HDRT_ERROR_COMPILE_LIMIT; HDRT_ERROR_IO  the source cannot be read;
 *     HDRT_ERROR_INVALID_ARGUMENT  an option that the compiler does not know or that is not allowed, named in the
 *     message; HDRT_ERROR_UNSUPPORTED  what this compiler cannot do; HDRT_ERROR_COMPANION  hdrt-cc is missing.
 */
HDRT_EXPORT hdrt_status hdrt_image_compile(hdrt_runtime *runtime, const hdrt_source *source,
                                           const hdrt_compile_options *options, hdrt_image **out_image);
/** As hdrt_image_compile, for `device`: without options->arch its own, with the compiler that its driver needs. */
HDRT_EXPORT hdrt_status hdrt_image_compile_for(hdrt_device *device, const hdrt_source *source,
                                               const hdrt_compile_options *options, hdrt_image **out_image);
/** Drop an image; one whose compile is still under way is cancelled (hdrt_image_cancel). NULL accepted. */
HDRT_EXPORT void hdrt_image_destroy(hdrt_image *image);
/** Describe an image. \return HDRT_OK; HDRT_NOT_READY  its compile is under way; HDRT_ERROR_INVALID_ARGUMENT. */
HDRT_EXPORT hdrt_status hdrt_image_get_info(const hdrt_image *image, hdrt_image_info *out_info);
/** The index-th diagnostic, borrowed; HDRT_ERROR_NOT_FOUND past the end. HDRT_NOT_READY as hdrt_image_get_info. */
HDRT_EXPORT hdrt_status hdrt_image_diagnostic(const hdrt_image *image, uint32_t index, hdrt_diagnostic *out_diagnostic);

/** One parameter of a kernel. */
typedef struct hdrt_parameter {
    uint32_t offset, size, align; /**< bytes */
    uint32_t argument_class;      /**< HDRT_CLASS_INTEGER, HDRT_CLASS_FLOAT, HDRT_CLASS_UNKNOWN */
} hdrt_parameter;

/** A kernel of an image. Strings and arrays belong to the image. */
typedef struct hdrt_image_kernel_info {
    size_t size;                      /**< set by the caller to sizeof(hdrt_image_kernel_info) */
    const char *name;                 /**< as it is in the code, mangled unless extern "C" */
    const char *expression;           /**< the first name expression that named it, NULL if none */
    const hdrt_parameter *parameters; /**< in order */
    uint32_t parameter_count;
    bool parameters_known;            /**< false: the code does not tell, `parameters` is empty */
    bool resources_known;             /**< false: PTX, whose registers and memory the driver decides; the next are 0 */
    uint32_t registers;               /**< 32-bit registers per thread */
    uint32_t static_shared_bytes;     /**< per block */
    uint32_t local_bytes;             /**< per thread */
} hdrt_image_kernel_info;

#define HDRT_IMAGE_KERNEL_INFO_INIT HDRT_INIT_(hdrt_image_kernel_info)

/** The index-th kernel; HDRT_ERROR_NOT_FOUND past the end. HDRT_NOT_READY as hdrt_image_get_info. */
HDRT_EXPORT hdrt_status hdrt_image_kernel(const hdrt_image *image, uint32_t index, hdrt_image_kernel_info *out_info);

/**
 * What a name expression of the compile became in the code: "_Z5scaleIfLi4EEvPT_".
 *
 * \param expression  byte for byte as in hdrt_compile_options.names; its "&" may be left out
 * \param out_name  borrowed from the image
 * \return HDRT_OK; HDRT_ERROR_NOT_FOUND  the message lists those there; HDRT_NOT_READY, HDRT_ERROR_INVALID_ARGUMENT.
 */
HDRT_EXPORT hdrt_status hdrt_image_lowered_name(const hdrt_image *image, const char *expression, const char **out_name);

/**
 * The index-th file that the compile read besides the source itself: an absolute path, borrowed; NULL past the end.
 * Also on a cache hit, which is one only if these files are as they were. None for linked images.
 */
HDRT_EXPORT const char *hdrt_image_dependency(const hdrt_image *image, uint32_t index);

/**
 * As hdrt_image_compile, but return before the compile. The source, its headers and all options are read and copied
 * before this returns, so errors in them are its own; what the compiler says comes later, through hdrt_image_status.
 *
 * \param out_image  an image under way: hdrt_image_status tells, all else returns HDRT_NOT_READY until then
 * \param out_event  an event of a host timeline: complete with the image, failed with the compile; may be NULL
 * \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_IO, HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_image_compile_async(hdrt_runtime *runtime, const hdrt_source *source,
                                                 const hdrt_compile_options *options, hdrt_image **out_image,
                                                 hdrt_event *out_event);

/**
 * How an image's compile came out, from whatever function it is. Does not wait: hdrt_event_wait does.
 * \return HDRT_OK; HDRT_NOT_READY; HDRT_ERROR_CANCELLED, or what the compile failed with, as hdrt_image_compile, with
 *     its message.
 */
HDRT_EXPORT hdrt_status hdrt_image_status(const hdrt_image *image);

/**
 * Cancel a compile under way: its event fails with HDRT_ERROR_CANCELLED before this returns, which does not wait for
 * the compiler; the compiler is stopped at once, unless another compile of the same waits for its result. Does nothing
 * to one that is over. Any thread.
 */
HDRT_EXPORT void hdrt_image_cancel(hdrt_image *image);

/** One compile of a batch. */
typedef struct hdrt_compile_item {
    const hdrt_source *source;           /**< what to compile */
    const hdrt_compile_options *options; /**< NULL: the defaults */
} hdrt_compile_item;

/**
 * Compile several sources side by side, as many at once as hdrt_runtime_options.compile_workers says, and wait for all.
 * One that fails does not stop the others.
 *
 * \param items, count  what to compile
 * \param out_images  `count` images, in the same order, each to be destroyed; of one that failed hdrt_image_status has
 *     the cause and, if the source has errors, the image their log and diagnostics. All NULL only if the call fails
 *     before the first compile
 * \return HDRT_OK  all compiled; else the status of the first in order that did not, its message with the source's name
 */
HDRT_EXPORT hdrt_status hdrt_image_compile_batch(hdrt_runtime *runtime, const hdrt_compile_item *items, uint32_t count,
                                                 hdrt_image **out_images);

/** One input of hdrt_image_link. */
typedef struct hdrt_link_input {
    size_t size;             /**< sizeof(hdrt_link_input) */
    const hdrt_image *image; /**< an image, its code; or NULL */
    const void *code;        /**< else bytes: LTO-IR, PTX, a relocatable cubin or object, a fatbin, a library of these */
    size_t code_size;        /**< bytes of code */
    const char *name;        /**< for messages; NULL: "input N" */
} hdrt_link_input;

#define HDRT_LINK_INPUT_INIT HDRT_INIT_(hdrt_link_input)

/** Options of hdrt_image_link. Start from HDRT_LINK_OPTIONS_INIT. */
typedef struct hdrt_link_options {
    size_t size;                 /**< sizeof(hdrt_link_options) */
    const char *arch;            /**< "sm_90"; NULL: that of the first image among the inputs */
    const char *const *options;  /**< -G -lineinfo --maxrregcount= -Xptxas= --ftz= --prec-div= --prec-sqrt= --fmad= */
    uint32_t option_count;       /**< how many */
    uint32_t time_limit_ms;      /**< as in hdrt_compile_options */
    uint64_t memory_limit_bytes; /**< as in hdrt_compile_options */
    bool ptx;                    /**< give PTX instead of a cubin: all inputs must be LTO-IR */
    bool no_cache;               /**< neither look up nor store */
    bool reserved_flags[2];      /**< false */
    uint32_t reserved[8];        /**< zero */
} hdrt_link_options;

#define HDRT_LINK_OPTIONS_INIT HDRT_INIT_(hdrt_link_options)

/**
 * Link code to one image by NVIDIA's nvJitLink, which runs in the compile worker: sources compiled one by one as
 * HDRT_CODE_LTO_IR are optimised as if they were one. Its output is for NVIDIA GPUs only.
 *
 * \return HDRT_OK; HDRT_ERROR_UNSUPPORTED  no nvJitLink is there (the message says where it was looked for), or it is
 *     older than the compiler of an input; HDRT_ERROR_COMPILE  it does not link: the image has the log;
 *     HDRT_ERROR_INVALID_ARGUMENT and others as hdrt_image_compile.
 */
HDRT_EXPORT hdrt_status hdrt_image_link(hdrt_runtime *runtime, const hdrt_link_input *inputs, uint32_t count,
                                        const hdrt_link_options *options, hdrt_image **out_image);

/**
 * An image from the bytes of an image file of the cache, a cubin, or PTX, copied; `name` (copied, may be NULL) is for
 * messages. Calls no driver. \return HDRT_OK; HDRT_ERROR_INVALID_IMAGE  damaged, or none of these, as the message says;
 * HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_OUT_OF_MEMORY.
 */
HDRT_EXPORT hdrt_status hdrt_image_read(const void *bytes, size_t size, const char *name, hdrt_image **out_image);
/**
 * The image as an image file of the cache, which checks itself: kernel table, log and provenance with the code.
 *
 * \param out_bytes, out_size  belong to the image, until its end or the next call
 */
HDRT_EXPORT hdrt_status hdrt_image_write(hdrt_image *image, const void **out_bytes, size_t *out_size);

/**
 * Write images to one file, a bundle, of which hdrt_module_load takes the one that suits its device best: a cubin for
 * just this GPU, else one for an older GPU of its major number, else the newest PTX that it can be compiled from.
 *
 * \param images, count  in any order; several that suit a device equally: the first
 * \param buffer  gets the bytes; NULL: only *size is set
 * \param size  in: bytes of buffer; out: bytes of the bundle
 * \return HDRT_OK; HDRT_NOT_READY  a compile is under way; HDRT_ERROR_INVALID_ARGUMENT  no images, one without code,
 *     or the buffer is too small; HDRT_ERROR_OUT_OF_MEMORY.
 */
HDRT_EXPORT hdrt_status hdrt_bundle_write(const hdrt_image *const *images, uint32_t count, void *buffer, size_t *size);
/** The index-th image of a bundle; as hdrt_image_read, and HDRT_ERROR_NOT_FOUND past the end. */
HDRT_EXPORT hdrt_status hdrt_bundle_image(const void *bytes, size_t size, uint32_t index, const char *name,
                                          hdrt_image **out_image);

/** Load an image into a device. \return as hdrt_module_load; HDRT_NOT_READY as hdrt_image_get_info. */
HDRT_EXPORT hdrt_status hdrt_module_load_image(hdrt_device *device, const hdrt_image *image, hdrt_module **out_module);

/** Options of hdrt_module_load. Start from HDRT_LOAD_OPTIONS_INIT. */
typedef struct hdrt_load_options {
    size_t size;          /**< sizeof(hdrt_load_options) */
    const char *name;     /**< for messages; NULL: "image". Copied. */
    bool lazy;            /**< load kernels when first asked for, see hdrt_module_preload */
    bool reserved_flags[3]; /**< false */
    uint32_t reserved[7]; /**< zero */
} hdrt_load_options;

#define HDRT_LOAD_OPTIONS_INIT HDRT_INIT_(hdrt_load_options)

/** Compile for a device and load, memory and disk cache first. \return as hdrt_image_compile and hdrt_module_load. */
HDRT_EXPORT hdrt_status hdrt_module_compile(hdrt_device *device, const hdrt_source *source,
                                            const hdrt_compile_options *options, hdrt_module **out_module);

/**
 * As hdrt_module_compile, but return before the compile, which goes on in the background up to the loaded module. The
 * source, its headers and all options are read and copied before this returns, so errors in them are its own.
 *
 * \param out_module  a module under way: hdrt_module_status tells. Until then hdrt_module_kernel and
 *     hdrt_module_global return HDRT_NOT_READY, and the log is ""
 * \param out_event  an event of a host timeline: complete with the module, failed with the compile; may be NULL
 * \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_IO, HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_DEVICE_LOST,
 *     HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_module_compile_async(hdrt_device *device, const hdrt_source *source,
                                                  const hdrt_compile_options *options, hdrt_module **out_module,
                                                  hdrt_event *out_event);

/**
 * How a module's compile came out. Does not wait: hdrt_event_wait does.
 * \return HDRT_OK  loaded; HDRT_NOT_READY; HDRT_ERROR_CANCELLED, or what compile or load failed with, as
 *     hdrt_module_compile, with its message.
 */
HDRT_EXPORT hdrt_status hdrt_module_status(const hdrt_module *module);

/**
 * Cancel a compile under way, as hdrt_image_cancel. A load that the driver has begun is neither interrupted nor waited
 * for.
 */
HDRT_EXPORT void hdrt_module_cancel(hdrt_module *module);

/**
 * Load PTX text, a cubin, an image file (hdrt_image_write), or what suits the device of a bundle (hdrt_bundle_write).
 * Loading can block until running kernels end, and holds up launches meanwhile.
 *
 * \param code, size  copied; PTX need not end in a NUL; recognised by its content
 * \return HDRT_OK; HDRT_ERROR_INVALID_IMAGE  the driver's own log is in the message; HDRT_ERROR_UNSUPPORTED  a cubin
 *     on the soft driver, or without readable parameters, or a bundle with nothing for the device;
 *     HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_OUT_OF_DEVICE_MEMORY, HDRT_ERROR_DEVICE_LOST,
 *     HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_module_load(hdrt_device *device, const void *code, size_t size,
                                         const hdrt_load_options *options, hdrt_module **out_module);

/**
 * Drop the caller's reference; a compile under way is cancelled (hdrt_module_cancel). The code stays loaded until every
 * operation that uses one of its kernels is complete. Code that can be shared by its key stays loaded after that as
 * well, for the next compile of the same, the least recently used going first beyond 64 modules or 64 MiB of code.
 * NULL accepted.
 */
HDRT_EXPORT void hdrt_module_destroy(hdrt_module *module);

/**
 * Load all kernels of a module now that were left for later (hdrt_compile_options.lazy, hdrt_load_options.lazy), so
 * that no launch has to. Modules that are not lazy have theirs loaded when they are made.
 *
 * What cannot be avoided: NVIDIA's driver loads code only while no kernel runs on the device, and holds up the
 * launches of all threads meanwhile. So load before the work begins, and never while a kernel waits for the host. The
 * first launch of a kernel that needs more local memory than any before it makes the driver wait in the same way.
 *
 * \return HDRT_OK; HDRT_NOT_READY; what hdrt_module_kernel returns for the first kernel that fails.
 */
HDRT_EXPORT hdrt_status hdrt_module_preload(hdrt_module *module);

/** Whether the module came from the disk or memory cache, so that no compiler ran. */
HDRT_EXPORT bool hdrt_module_from_cache(const hdrt_module *module);

/** The compiler's log ("" if none), borrowed; also on a cache hit. */
HDRT_EXPORT const char *hdrt_module_log(const hdrt_module *module);

/**
 * A kernel by its name in the code, or by a name expression of the compile (hdrt_compile_options.names), borrowed from
 * the module. \return HDRT_OK; HDRT_ERROR_NOT_FOUND  the message lists those there; HDRT_NOT_READY  the compile is
 * under way; what the compile failed with.
 */
HDRT_EXPORT hdrt_status hdrt_module_kernel(hdrt_module *module, const char *name, hdrt_kernel **out_kernel);

/** The index-th kernel's name, borrowed; NULL past the end. */
HDRT_EXPORT const char *hdrt_module_kernel_name(const hdrt_module *module, uint32_t index);

/**
 * Address and size of a global or constant variable, by its name in the code or by a name expression of the compile.
 * \return HDRT_OK, HDRT_ERROR_NOT_FOUND, HDRT_ERROR_DEVICE_LOST, HDRT_NOT_READY, what the compile failed with.
 */
HDRT_EXPORT hdrt_status hdrt_module_global(hdrt_module *module, const char *name, hdrt_ptr *out_ptr, uint64_t *out_bytes);

/** The kernel's name, borrowed. */
HDRT_EXPORT const char *hdrt_kernel_name(const hdrt_kernel *kernel);

/** The index-th parameter; HDRT_ERROR_NOT_FOUND past the end. */
HDRT_EXPORT hdrt_status hdrt_kernel_parameter(const hdrt_kernel *kernel, uint32_t index, hdrt_parameter *out_parameter);

/** What a kernel needs. */
typedef struct hdrt_kernel_info {
    size_t size;                 /**< set by the caller to sizeof(hdrt_kernel_info) */
    uint32_t parameter_count;
    uint32_t registers;          /**< 32-bit registers per thread */
    uint32_t static_shared_bytes;
    uint32_t local_bytes;        /**< per thread */
    uint32_t constant_bytes;     /**< of the module's user constants */
    uint32_t max_threads_per_block; /**< for this kernel, at most the device's */
    uint32_t ptx_version, binary_version; /**< 10 * major + minor */
} hdrt_kernel_info;

#define HDRT_KERNEL_INFO_INIT HDRT_INIT_(hdrt_kernel_info)

/** Ask what a kernel needs. \return HDRT_OK, HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_DRIVER, HDRT_ERROR_DEVICE_LOST. */
HDRT_EXPORT hdrt_status hdrt_kernel_attributes(hdrt_kernel *kernel, hdrt_kernel_info *out_info);

/** Most blocks of `block_threads` threads with `shared` dynamic bytes that one multiprocessor holds at once. */
HDRT_EXPORT hdrt_status hdrt_kernel_occupancy(hdrt_kernel *kernel, uint32_t block_threads, uint32_t shared,
                                              uint32_t *out_blocks);

/** A compiler that was found, or why not. Strings belong to the runtime. */
typedef struct hdrt_compiler_info {
    size_t size;             /**< set by the caller to sizeof(hdrt_compiler_info) */
    const char *path;        /**< NULL: not found */
    const char *rule;        /**< which rule found it, or what was tried */
    const char *linker_path; /**< nvJitLink beside an NVRTC; NULL: there is none */
    uint32_t version_major, version_minor; /**< of an NVRTC, as its files are named; 0, 0: they do not tell */
} hdrt_compiler_info;

#define HDRT_COMPILER_INFO_INIT HDRT_INIT_(hdrt_compiler_info)

/**
 * Where a compiler is (HDRT_COMPILER_NVRTC or HDRT_COMPILER_CLANG). Starts nothing.
 *
 * Of several NVRTCs, each compile uses the first one that knows the GPU and is not newer than its driver; else the
 * first that knows the GPU, whose cubins this driver takes but not its PTX; else the first that is not newer than the
 * driver, whose PTX the driver compiles; else the first. This function tells the first of all. An NVRTC named by option
 * or HDRT_NVRTC is the only one.
 */
HDRT_EXPORT hdrt_status hdrt_runtime_compiler(hdrt_runtime *runtime, hdrt_compiler compiler, hdrt_compiler_info *out_info);

/**
 * The index-th compiler of a kind in the order of the search: toolkits named by CUDA_HOME and CUDA_PATH, the loader's
 * places, /usr/local/cuda and those beside it, then Python packages: of the active virtual environment, of the user, of
 * the system. A file that is found by several names is listed once. If there is none at all, the 0th has no path and
 * says what was tried. \return HDRT_OK; HDRT_ERROR_NOT_FOUND  past the end.
 */
HDRT_EXPORT hdrt_status hdrt_runtime_compiler_at(hdrt_runtime *runtime, hdrt_compiler compiler, uint32_t index,
                                                 hdrt_compiler_info *out_info);

#endif
