/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The execution engine of the software CUDA device: PTX text in, grids of threads run on the CPU.
 * Any thread may call; launches of different threads run at the same time over one pool of workers.
 * Results are CUresult values as plain ints (0 done), or GS_CANCELLED; struct gs_error says why.
 * A module must outlive its launches, and the strings and functions got from it die with it.
 */
#ifndef GS_ENGINE_H
#define GS_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A device pointer is a host pointer, and every device-visible byte lies in [GS_VA_BASE,
 * GS_VA_END). The front end maps memory piecewise (MAP_FIXED_NOREPLACE) below GS_VA_INTERNAL; the
 * engine keeps shared and local windows, parameters, constants, module variables and heaps above
 * it. Nothing is mapped for the whole range: a page without memory, or without permission, is fault
 * 700. The range lies in AddressSanitizer's high memory (from 0x10007fff8000). ThreadSanitizer
 * leaves less: what it allows below the place of position-independent executables.
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

/* The results the engine itself gives, with CUresult's values. */
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
	GS_CANCELLED = -125, /* the launch's cancel flag stopped it; -ECANCELED */
};

/* For GS_INVALID_PTX the text holds "line N: ...": usable as the JIT error log. */
struct gs_error {
	int code;
	char text[512];
};

enum gs_isa {
	GS_ISA_AUTO, /* the best the CPU has */
	GS_ISA_BASELINE,
	GS_ISA_AVX2,
	GS_ISA_AVX512,
};

struct gs_engine_options {
	int workers; /* 0: one per core; 1: blocks run in order, every run is the same */
	enum gs_isa isa;
};

/*
 * Starts the workers and installs the SIGSEGV/SIGBUS handler, which passes faults outside kernels
 * on to the handler found at that time. Calls after the first change nothing and return 0. NULL
 * options: all defaults, or what GS_WORKERS and GS_ISA (baseline, avx2, avx512) say.
 */
int gs_engine_init(const struct gs_engine_options *options);
int gs_engine_workers(void);
const char *gs_engine_isa(void);

/* What malloc and free in kernels use: one per context, given to each launch. Pages cost when used.
 */
struct gs_heap;
int gs_heap_create(size_t size, struct gs_heap **heap_p);
void gs_heap_destroy(struct gs_heap *heap);
size_t gs_heap_size(const struct gs_heap *heap);

/* The text need not end with a NUL byte; trailing NUL bytes are allowed.  Valid PTX that the device
 * does not run is no error: it is its function's alone (gs_function_info). */
struct gs_module;
struct gs_function;
int gs_module_load(const char *ptx, size_t size, struct gs_module **module_p,
		   struct gs_error *error);
void gs_module_unload(struct gs_module *module);

/* Kernels (.entry) only; a name that is not there gives NULL. */
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
/* Where the number of a texture reference (or a surface reference) lies, by its name. */
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
	uint32_t param_bytes;       /* the packed buffer's size */
	uint32_t shared_bytes;      /* static */
	uint32_t const_bytes;       /* the module's user constants */
	uint32_t local_bytes;       /* per thread */
	uint32_t registers;         /* an estimate for occupancy, 8..255 */
	uint32_t max_threads;       /* per block: .maxntid, .reqntid or 1024 */
	uint32_t required_block[3]; /* .reqntid; 0 where none is required */
	int ptx_version;            /* 90: PTX 9.0 */
	int target;                 /* 75: .target sm_75; also what to report as binaryVersion */
	bool uses_printf;
	bool uses_heap;
	bool uses_grid_sync; /* reads the grid workspace: must be launched cooperatively */
	/* "line N: ...": why a launch is GS_NOT_SUPPORTED; NULL: the device runs it.  Calls of
	 * functions that it does not run count, but for those through pointers, which trap. */
	const char *unsupported;
};
void gs_function_info(const struct gs_function *function, struct gs_function_info *info_p);

/*
 * Multiprocessors that grids are confined to: %smid names no other, and the launches that share a
 * partition have at most `count` threads at work, or one each if there are more of them. It must
 * outlive its launches; `threads` is the engine's.
 */
struct gs_partition {
	const uint16_t *multiprocessors; /* `count` different numbers */
	uint32_t count;
	uint32_t threads;
};

/* Numbers that kernels set by cudaGraphSetConditional().  0: there are too many. */
uint64_t gs_condition_add(void);
void gs_condition_remove(uint64_t number);
/* false: there is none. */
bool gs_condition_set(uint64_t number, uint32_t value);
uint32_t gs_condition_get(uint64_t number);

typedef void gs_print_func(void *arg, const char *text, size_t len);

/* What a kernel makes of a node of a graph. */
struct gs_node_change {
	enum {
		GS_CHANGE_PARAM,
		GS_CHANGE_ENABLED,
		GS_CHANGE_GRID
	} kind;
	uint64_t offset, size; /* of the parameters' bytes */
	const void *bytes;
	bool enabled;
	uint32_t grid[3];
};

/* What kernels of graphs can do with graphs. Called from the workers; the answers are cudaError_t.
 */
struct gs_graphs {
	uint64_t current; /* the executable that the kernel is part of */
	int (*launch)(const struct gs_graphs *graphs, uint64_t exec, uint64_t stream);
	int (*change)(const struct gs_graphs *graphs, uint64_t node,
		      const struct gs_node_change *change);
};

struct gs_launch {
	const struct gs_function *function;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t cluster[3]; /* 0 or 1 each */
	uint32_t dynamic_shared;
	const void *params; /* packed as gs_function_info says; copied before anything runs */
	size_t params_size;
	bool cooperative;
	uint32_t multiprocessors;       /* of the device, for %nsmid; 0: one per worker */
	struct gs_partition *partition; /* NULL: the whole device */
	uint32_t resident_blocks;   /* at a time on each of a partition's multiprocessors; 0: any
				       number */
	const volatile int *cancel; /* nonzero stops the launch within about 50 ms; may be NULL */
	struct gs_heap *heap;       /* NULL: malloc in kernels returns NULL */
	const struct gs_graphs *graphs; /* NULL: it is no part of a graph */
	/* Called from the workers, one call at a time within a launch. NULL: stdout and stderr. */
	gs_print_func *print;
	gs_print_func *print_error; /* the text of a failed assert */
	void *print_arg;
};

/* Runs the whole grid and returns when no thread of it runs any more. */
int gs_launch(const struct gs_launch *launch, struct gs_error *error);

#endif
