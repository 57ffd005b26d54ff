/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution engine of the software CUDA device: loads PTX text and runs grids of threads on the
 * CPU.
 *
 * Ownership: a module must outlive its launches. Functions and strings obtained from a module are
 * borrowed and freed with it.
 * Threads: any; launches of different threads run concurrently on one pool of workers, which are
 * threads of the process.
 * Errors: functions that return int return a value of enum gs_result, 0 for success. struct
 * gs_error has the reason; it is borrowed and always written where it is a parameter.
 * Units: sizes and offsets are in bytes.
 */
#ifndef GS_ENGINE_H
#define GS_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A device pointer is a host pointer, and every device-visible byte is in [GS_VA_BASE, GS_VA_END).
 * The driver part maps memory piecewise (MAP_FIXED_NOREPLACE) below GS_VA_INTERNAL; above it the
 * engine allocates shared and local windows, parameters, constants, module variables and heaps. The
 * range as a whole is not mapped: an access to a page without memory or permission is fault 700.
 * The range is in AddressSanitizer's high memory (from 0x10007fff8000). ThreadSanitizer leaves
 * less: the part that it allows below the addresses of position-independent executables.
 */
#ifdef GS_VA_FOR_TSAN
#define GS_VA_BASE 0x550000000000ull
#define GS_VA_INTERNAL 0x553000000000ull
#define GS_VA_END 0x554000000000ull
#else
#define GS_VA_BASE 0x110000000000ull
#define GS_VA_INTERNAL 0x3f0000000000ull
#define GS_VA_END 0x400000000000ull
#endif

/* Results of the engine, with the values of CUresult except for GS_CANCELLED. */
enum gs_result {
	GS_OK = 0,
	GS_INVALID_VALUE = 1,
	GS_OUT_OF_MEMORY = 2,
	GS_NOT_INITIALIZED = 3,
	GS_INVALID_PTX = 218,
	GS_NOT_FOUND = 500,
	GS_ILLEGAL_ADDRESS = 700,
	GS_LAUNCH_OUT_OF_RESOURCES = 701,
	GS_ASSERT = 710,
	GS_HARDWARE_STACK_ERROR = 714,
	GS_ILLEGAL_INSTRUCTION = 715,
	GS_MISALIGNED_ADDRESS = 716,
	GS_INVALID_ADDRESS_SPACE = 717,
	GS_INVALID_PC = 718,
	GS_LAUNCH_FAILED = 719,
	GS_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
	GS_NOT_SUPPORTED = 801,
	GS_CANCELLED = -125, /* stopped by the launch's cancel flag; -ECANCELED */
};

/* Reason of a failure. For GS_INVALID_PTX the text has the form "line N: ...", suitable as the JIT
 * error log. Code 0 and an empty text after success. */
struct gs_error {
	int code;
	char text[512];
};

enum gs_isa {
	GS_ISA_AUTO, /* the best that the CPU supports */
	GS_ISA_BASELINE,
	GS_ISA_AVX2,
	GS_ISA_AVX512,
};

struct gs_engine_options {
	int workers; /* threads that run blocks, at most 256. 0: one per core. 1: blocks run in
			order, and every run is deterministic */
	enum gs_isa isa;
};

/*
 * Starts the workers and installs the SIGSEGV and SIGBUS handlers, which pass faults outside of
 * kernels on to the previous handlers. NULL options: the environment variables GS_WORKERS and
 * GS_ISA (baseline, avx2, avx512), or defaults. Returns GS_OK, or GS_INVALID_VALUE if the CPU lacks
 * the instruction set. After a success, later calls have no effect and return GS_OK.
 */
int gs_engine_init(const struct gs_engine_options *options);
/* Returns the number of workers of a launch, including the thread that calls gs_launch(). */
int gs_engine_workers(void);
/* Returns the name of the instruction set in use as a static string. */
const char *gs_engine_isa(void);

/* Heap for malloc and free in kernels: one per context, passed to each launch. gs_heap_create()
 * reserves `size` bytes, whose pages are allocated on use. It returns GS_OK and a heap in *heap_p,
 * which the caller destroys after the last launch that uses it; or GS_OUT_OF_MEMORY, with *heap_p
 * unchanged. */
struct gs_heap;
int gs_heap_create(size_t size, struct gs_heap **heap_p);
void gs_heap_destroy(struct gs_heap *heap);
size_t gs_heap_size(const struct gs_heap *heap);

/*
 * A loaded module and a function of it.
 *
 * gs_module_load() loads PTX text and does not refer to it afterwards. The text need not end with a
 * NUL; trailing NULs are allowed. Valid PTX that the device cannot run is not an error: it only
 * affects its function (unsupported in struct gs_function_info). Returns GS_OK and a module in
 * *module_p, which gs_module_unload() frees; or GS_INVALID_PTX, GS_OUT_OF_MEMORY or
 * GS_NOT_SUPPORTED, with *module_p unchanged.
 */
struct gs_module;
struct gs_function;
int gs_module_load(const char *ptx, size_t size, struct gs_module **module_p,
		   struct gs_error *error);
void gs_module_unload(struct gs_module *module);

/* Lookup of kernels (.entry) by name and by index below gs_module_function_count().
 * gs_module_function() returns NULL for an unknown name. */
const struct gs_function *gs_module_function(const struct gs_module *module, const char *name);
size_t gs_module_function_count(const struct gs_module *module);
const struct gs_function *gs_module_function_at(const struct gs_module *module, size_t index);

/* A module variable in .global or .const memory. */
struct gs_global {
	const char *name;
	uint64_t address;
	uint64_t size;
	bool is_const;
};
/* Stores the address and the size of a variable. Returns GS_OK, or GS_NOT_FOUND for an unknown
 * name. */
int gs_module_global(const struct gs_module *module, const char *name, uint64_t *address_p,
		     uint64_t *size_p);
/* Stores the address of the variable that contains the ID of a texture reference (or a surface
 * reference) of this name. Returns GS_OK or GS_NOT_FOUND. */
int gs_module_reference(const struct gs_module *module, const char *name, bool is_surface,
			uint64_t *address_p);
/* Enumerate the module's variables; the index is below the count. */
size_t gs_module_global_count(const struct gs_module *module);
void gs_module_global_at(const struct gs_module *module, size_t index, struct gs_global *global_p);

/* Place of a parameter in the packed buffer. */
struct gs_param {
	uint32_t offset;
	uint32_t size;
};

/* Properties of a kernel; pointers are borrowed from its module. */
struct gs_function_info {
	const char *name;
	const struct gs_module *module;
	const struct gs_param *params;
	uint32_t param_count;
	uint32_t param_bytes;       /* size of the packed parameter buffer */
	uint32_t shared_bytes;      /* static shared memory per block */
	uint32_t const_bytes;       /* constant memory of the whole module */
	uint32_t local_bytes;       /* local memory per thread */
	uint32_t registers;         /* estimate for occupancy, 8 to 255 */
	uint32_t max_threads;       /* threads per block: .maxntid, .reqntid or 1024 */
	uint32_t required_block[3]; /* block dimensions of .reqntid; all 0: not required */
	int ptx_version;            /* 90: PTX 9.0 */
	int target;                 /* 75: .target sm_75; also reported as binaryVersion */
	bool uses_printf;
	bool uses_heap;
	bool uses_grid_sync; /* reads the grid workspace, so it requires a cooperative launch */
	/* Reason for which a launch returns GS_NOT_SUPPORTED, "line N: ...". NULL: the device can
	 * run the kernel. It also covers unsupported functions that the kernel calls directly;
	 * those called through pointers trap when they are called. */
	const char *unsupported;
};
void gs_function_info(const struct gs_function *function, struct gs_function_info *info_p);

/*
 * Set of multiprocessors to which grids are confined: %smid has only their numbers. The launches
 * that share a partition use at most `count` worker threads at a time, or one each if there are
 * more launches than that. A partition must outlive its launches. `threads` is the engine's and
 * starts as 0.
 */
struct gs_partition {
	const uint16_t *multiprocessors; /* `count` distinct numbers */
	uint32_t count;
	uint32_t threads;
};

/*
 * Condition values that kernels set with cudaGraphSetConditional().
 *
 * gs_condition_add() creates one with value 0 and returns its ID, or 0 if there are too many.
 * gs_condition_remove() removes it; unknown IDs are ignored.
 */
uint64_t gs_condition_add(void);
void gs_condition_remove(uint64_t number);
/* Sets a value. Returns true, or false for an unknown ID. */
bool gs_condition_set(uint64_t number, uint32_t value);
/* Returns a value, or 0 for an unknown ID. */
uint32_t gs_condition_get(uint64_t number);

/* Receives text of a kernel, `len` bytes without a NUL, which are valid during the call only. */
typedef void gs_print_func(void *arg, const char *text, size_t len);

/* A kernel's update of a device-updatable graph node; `kind` selects the valid members. */
struct gs_node_change {
	enum {
		GS_CHANGE_PARAM,
		GS_CHANGE_ENABLED,
		GS_CHANGE_GRID
	} kind;
	/* GS_CHANGE_PARAM: range of the parameter bytes to replace by `bytes`. */
	uint64_t offset, size;
	const void *bytes;
	bool enabled;
	uint32_t grid[3];
};

/* Operations on graphs for kernels that launch or update graphs. Called by workers; return a
 * cudaError_t. The struct must exist until the launch is complete. */
struct gs_graphs {
	uint64_t current; /* ID of the executable graph that contains the kernel */
	int (*launch)(const struct gs_graphs *graphs, uint64_t exec, uint64_t stream);
	int (*change)(const struct gs_graphs *graphs, uint64_t node,
		      const struct gs_node_change *change);
};

/* A launch. The struct and everything that it points to are borrowed and must exist until
 * gs_launch() returns. */
struct gs_launch {
	const struct gs_function *function;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t cluster[3]; /* blocks of a cluster; 0 or 1 in each dimension, because larger
				clusters are not supported */
	uint32_t dynamic_shared;
	/* Packed as described by struct gs_function_info. */
	const void *params;
	size_t params_size;
	bool cooperative;
	uint32_t multiprocessors;       /* of the device, for %nsmid; 0: one per worker */
	struct gs_partition *partition; /* NULL: the whole device */
	uint32_t resident_blocks;       /* limit per multiprocessor of a partition; 0: no limit */
	const volatile int *cancel; /* set to nonzero by any thread to stop the launch within about
				       50 ms; NULL: cannot be stopped */
	struct gs_heap *heap;       /* NULL: malloc in kernels returns NULL */
	const struct gs_graphs *graphs; /* NULL: the kernel cannot launch or update graphs */
	/* Receive the kernel's output and (print_error) the text of a failed assert. Called by
	 * workers, one call at a time within a launch. NULL: stdout and stderr. */
	gs_print_func *print;
	gs_print_func *print_error; /* text of a failed assert */
	void *print_arg;
};

/* Runs the whole grid in the calling thread and the workers. Waits until none of its threads runs
 * any more, with no limit other than `cancel`. Returns GS_OK; GS_CANCELLED; GS_NOT_SUPPORTED,
 * GS_INVALID_VALUE or another error of the launch's arguments, in which case nothing has run; or
 * the fault that ended the kernel. */
int gs_launch(const struct gs_launch *launch, struct gs_error *error);

#endif
