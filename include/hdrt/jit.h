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
    const char *const *header_names; /**< in-memory headers (HDRT_ERROR_UNSUPPORTED in this version): NULL */
    const char *const *header_texts;
    uint32_t header_count;
    uint32_t reserved;       /**< zero */
} hdrt_source;

#define HDRT_SOURCE_INIT HDRT_INIT_(hdrt_source)

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
} hdrt_code_kind;

/** Options of a compile. Start from HDRT_COMPILE_OPTIONS_INIT. */
typedef struct hdrt_compile_options {
    size_t size;                  /**< sizeof(hdrt_compile_options) */
    hdrt_compiler compiler;       /**< which compiler */
    hdrt_code_kind kind;          /**< what to make */
    const char *arch;             /**< "sm_90", "sm_90a"; NULL: the device's, lowered to what the compiler knows */
    const char *const *options;   /**< NVRTC spelling: -I -D -U -std= -lineinfo -G --use_fast_math --maxrregcount= ... */
    uint32_t option_count;        /**< how many */
    uint32_t time_limit_ms;       /**< 0: 60,000; HDRT_ERROR_COMPILE_LIMIT past it */
    uint64_t memory_limit_bytes;  /**< address space of the compiler; 0: 8 GiB; ignored in sanitizer builds */
    const char *const *names;     /**< name expressions (HDRT_ERROR_UNSUPPORTED in this version): NULL */
    uint32_t name_count;
    bool no_cache;                /**< neither look up nor store */
    bool lower_arch;              /**< `arch` may be lowered to the highest that the compiler knows; info.note says so */
    uint32_t reserved[8];         /**< zero */
} hdrt_compile_options;

#define HDRT_COMPILE_OPTIONS_INIT HDRT_INIT_(hdrt_compile_options)

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
    hdrt_compiler compiler;     /**< NVRTC or CLANG */
    const char *compiler_path;  /**< its file */
    const char *log;            /**< all that the compiler said, "" if nothing; also on a cache hit */
    bool from_cache;            /**< no compiler ran */
    const char *note;           /**< e.g. the target was lowered, and why; NULL: nothing to say */
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
HDRT_EXPORT void hdrt_image_destroy(hdrt_image *image);
HDRT_EXPORT hdrt_status hdrt_image_get_info(const hdrt_image *image, hdrt_image_info *out_info);
/** The index-th diagnostic, borrowed; HDRT_ERROR_NOT_FOUND past the end. */
HDRT_EXPORT hdrt_status hdrt_image_diagnostic(const hdrt_image *image, uint32_t index, hdrt_diagnostic *out_diagnostic);
/** Load an image into a device. \return as hdrt_module_load. */
HDRT_EXPORT hdrt_status hdrt_module_load_image(hdrt_device *device, const hdrt_image *image, hdrt_module **out_module);

/** Options of hdrt_module_load. Start from HDRT_LOAD_OPTIONS_INIT. */
typedef struct hdrt_load_options {
    size_t size;          /**< sizeof(hdrt_load_options) */
    const char *name;     /**< for messages; NULL: "image". Copied. */
    uint32_t reserved[8]; /**< zero */
} hdrt_load_options;

#define HDRT_LOAD_OPTIONS_INIT HDRT_INIT_(hdrt_load_options)

/** Compile for a device and load, memory and disk cache first. \return as hdrt_image_compile and hdrt_module_load. */
HDRT_EXPORT hdrt_status hdrt_module_compile(hdrt_device *device, const hdrt_source *source,
                                            const hdrt_compile_options *options, hdrt_module **out_module);

/** As hdrt_module_compile, with an event for when it is done. \return HDRT_ERROR_UNSUPPORTED  in this version. */
HDRT_EXPORT hdrt_status hdrt_module_compile_async(hdrt_device *device, const hdrt_source *source,
                                                  const hdrt_compile_options *options, hdrt_module **out_module,
                                                  hdrt_event *out_event);

/**
 * Load PTX text or a cubin. Loading can block until running kernels end, and holds up launches meanwhile.
 *
 * \param code, size  copied; PTX need not end in a NUL; recognised by its content
 * \return HDRT_OK; HDRT_ERROR_INVALID_IMAGE  the driver's own log is in the message; HDRT_ERROR_UNSUPPORTED  a cubin
 *     on the soft driver, or without readable parameters; HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_OUT_OF_MEMORY,
 *     HDRT_ERROR_OUT_OF_DEVICE_MEMORY, HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_module_load(hdrt_device *device, const void *code, size_t size,
                                         const hdrt_load_options *options, hdrt_module **out_module);

/** Drop the caller's reference. The code stays loaded until every operation that uses one of its kernels is complete. */
HDRT_EXPORT void hdrt_module_destroy(hdrt_module *module);

/** Whether the module came from the disk or memory cache, so that no compiler ran. */
HDRT_EXPORT bool hdrt_module_from_cache(const hdrt_module *module);

/** The compiler's log ("" if none), borrowed; also on a cache hit. */
HDRT_EXPORT const char *hdrt_module_log(const hdrt_module *module);

/** A kernel by name, borrowed from the module. \return HDRT_OK; HDRT_ERROR_NOT_FOUND  the message lists those there. */
HDRT_EXPORT hdrt_status hdrt_module_kernel(hdrt_module *module, const char *name, hdrt_kernel **out_kernel);

/** The index-th kernel's name, borrowed; NULL past the end. */
HDRT_EXPORT const char *hdrt_module_kernel_name(const hdrt_module *module, uint32_t index);

/** Address and size of a global or constant variable. \return HDRT_OK, HDRT_ERROR_NOT_FOUND, HDRT_ERROR_DEVICE_LOST. */
HDRT_EXPORT hdrt_status hdrt_module_global(hdrt_module *module, const char *name, hdrt_ptr *out_ptr, uint64_t *out_bytes);

/** The kernel's name, borrowed. */
HDRT_EXPORT const char *hdrt_kernel_name(const hdrt_kernel *kernel);

/** One parameter of a kernel. */
typedef struct hdrt_parameter {
    uint32_t offset, size, align; /**< bytes */
    uint32_t argument_class;      /**< HDRT_CLASS_INTEGER, HDRT_CLASS_FLOAT, HDRT_CLASS_UNKNOWN */
} hdrt_parameter;

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
} hdrt_compiler_info;

#define HDRT_COMPILER_INFO_INIT HDRT_INIT_(hdrt_compiler_info)

/** Where a compiler is (HDRT_COMPILER_NVRTC or HDRT_COMPILER_CLANG). Starts nothing. */
HDRT_EXPORT hdrt_status hdrt_runtime_compiler(hdrt_runtime *runtime, hdrt_compiler compiler, hdrt_compiler_info *out_info);

#endif
