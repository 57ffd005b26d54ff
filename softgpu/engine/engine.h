/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution engine of the software CUDA device: loads PTX text and runs grids of threads on the
 * CPU.
 *
 * Ownership: a module must outlive its launches; strings and functions obtained from it are freed
 * with it.
 * Threads: any; launches of different threads run concurrently on one pool of workers.
 * Errors: CUresult values as int (0: success), or GS_CANCELLED; struct gs_error has the reason.
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

/* Results of the engine itself, with the values of CUresult. */
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

/* For GS_INVALID_PTX the text has the form "line N: ...", suitable as the JIT error log. */
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
	int workers; /* 0: one per core; 1: blocks run in order, and every run is deterministic */
	enum gs_isa isa;
};

/*
 * Starts the workers and installs the SIGSEGV/SIGBUS handler, which passes faults outside of
 * kernels on to the previous handler. Later calls have no effect and return 0. NULL options:
 * defaults, or the environment variables GS_WORKERS and GS_ISA (baseline, avx2, avx512).
 */
int gs_engine_init(const struct gs_engine_options *options);
int gs_engine_workers(void);
const char *gs_engine_isa(void);

/* Heap for malloc and free in kernels: one per context, passed to each launch. Pages are allocated
 * on use. */
struct gs_heap;
int gs_heap_create(size_t size, struct gs_heap **heap_p);
void gs_heap_destroy(struct gs_heap *heap);
size_t gs_heap_size(const struct gs_heap *heap);

/* Loads a module. The text need not end with a NUL; trailing NULs are allowed. Valid PTX that the
 * device cannot run is not an error: it only affects its function (gs_function_info). */
struct gs_module;
struct gs_function;
int gs_module_load(const char *ptx, size_t size, struct gs_module **module_p,
		   struct gs_error *error);
void gs_module_unload(struct gs_module *module);

/* Kernels (.entry) only; NULL for an unknown name. */
const struct gs_function *gs_module_function(const struct gs_module *module, const char *name);
size_t gs_module_function_count(const struct gs_module *module);
const struct gs_function *gs_module_function_at(const struct gs_module *module, size_t index);

/* Module variables, .global and .const. */
struct gs_global {
	const char *name;
	uint64_t address;
	uint64_t size;
	bool is_const;
};
int gs_module_global(const struct gs_module *module, const char *name, uint64_t *address_p,
		     uint64_t *size_p);
/* Returns the address of the variable with the number of a texture reference (or a surface
 * reference), by its name. */
int gs_module_reference(const struct gs_module *module, const char *name, bool is_surface,
			uint64_t *address_p);
size_t gs_module_global_count(const struct gs_module *module);
void gs_module_global_at(const struct gs_module *module, size_t index, struct gs_global *global_p);

struct gs_param {
	uint32_t offset;
	uint32_t size;
};

struct gs_function_info {
	const char *name;
	const struct gs_module *module;
	const struct gs_param *params;
	uint32_t param_count;
	uint32_t param_bytes;       /* size of the packed buffer */
	uint32_t shared_bytes;      /* static */
	uint32_t const_bytes;       /* the module's user constants */
	uint32_t local_bytes;       /* per thread */
	uint32_t registers;         /* estimate for occupancy, 8 to 255 */
	uint32_t max_threads;       /* per block: .maxntid, .reqntid or 1024 */
	uint32_t required_block[3]; /* .reqntid; 0: not required */
	int ptx_version;            /* 90: PTX 9.0 */
	int target;                 /* 75: .target sm_75; also reported as binaryVersion */
	bool uses_printf;
	bool uses_heap;
	bool uses_grid_sync; /* reads the grid workspace: requires a cooperative launch */
	/* Reason for which a launch returns GS_NOT_SUPPORTED, "line N: ..."; NULL: the device can
	 * run the kernel. Includes unsupported functions that it calls, except through pointers,
	 * which trap. */
	const char *unsupported;
};
void gs_function_info(const struct gs_function *function, struct gs_function_info *info_p);

/*
 * Multiprocessors to which grids are confined: %smid only has their numbers. The launches that
 * share a partition use at most `count` threads at a time, or one each if there are more launches.
 * Must outlive its launches; `threads` belongs to the engine.
 */
struct gs_partition {
	const uint16_t *multiprocessors; /* `count` distinct numbers */
	uint32_t count;
	uint32_t threads;
};

/* Condition values that kernels set with cudaGraphSetConditional(). Returns the number of a new
 * one; 0: there are too many. */
uint64_t gs_condition_add(void);
void gs_condition_remove(uint64_t number);
/* Returns false for an unknown number. */
bool gs_condition_set(uint64_t number, uint32_t value);
uint32_t gs_condition_get(uint64_t number);

typedef void gs_print_func(void *arg, const char *text, size_t len);

/* A kernel's update of a graph node. */
struct gs_node_change {
	enum {
		GS_CHANGE_PARAM,
		GS_CHANGE_ENABLED,
		GS_CHANGE_GRID
	} kind;
	uint64_t offset, size; /* range of the parameter bytes */
	const void *bytes;
	bool enabled;
	uint32_t grid[3];
};

/* Operations on graphs for kernels of graphs. Called by the workers; return cudaError_t. */
struct gs_graphs {
	uint64_t current; /* executable that contains the kernel */
	int (*launch)(const struct gs_graphs *graphs, uint64_t exec, uint64_t stream);
	int (*change)(const struct gs_graphs *graphs, uint64_t node,
		      const struct gs_node_change *change);
};

struct gs_launch {
	const struct gs_function *function;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t cluster[3]; /* 0 or 1 in each dimension */
	uint32_t dynamic_shared;
	/* Packed as described by gs_function_info; copied before the launch starts. */
	const void *params;
	size_t params_size;
	bool cooperative;
	uint32_t multiprocessors;       /* of the device, for %nsmid; 0: one per worker */
	struct gs_partition *partition; /* NULL: the whole device */
	uint32_t resident_blocks;       /* per multiprocessor of a partition; 0: no limit */
	const volatile int *cancel; /* nonzero stops the launch within about 50 ms; may be NULL */
	struct gs_heap *heap;       /* NULL: malloc in kernels returns NULL */
	const struct gs_graphs *graphs; /* NULL: not part of a graph */
	/* Called by the workers, one call at a time within a launch. NULL: stdout and stderr. */
	gs_print_func *print;
	gs_print_func *print_error; /* text of a failed assert */
	void *print_arg;
};

/* Runs the whole grid and returns when none of its threads runs any more. */
int gs_launch(const struct gs_launch *launch, struct gs_error *error);

#endif
