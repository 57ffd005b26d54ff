/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/export_table.h"

#include "base/environment.h"
#include "client/context/context_storage.h"
#include "client/entry/init.h"
#include "client/guard/guard.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEVICES_MAX 64
#define SLOTS_MAX 100

/* Larger than any known runtime reads; CUDA 13.0 accepts no fewer than 523 and 14 elements. */
#define RUNTIME_CALLBACKS 4096
#define RUNTIME_EVENTS 64

typedef void (*slot_function)(void);

union slot {
	size_t bytes; /* slot 0 of most tables: size of the table in bytes, including this slot */
	slot_function call;
};

enum table_index {
	CUDART_INTERFACE,
	RUNTIME_HOOKS,
	TOOLS_TLS,
	CONTEXT_STORAGE,
	CONTEXT_CHECKS,
	INTEGRITY,
	TOOLS_CONTEXT,
	TOOLS_MODULE,
	CUBLASLT,
	TABLE_COUNT
};

static union slot cudart_interface[13];
static union slot runtime_hooks[7];
static union slot tools_tls[4];
static union slot context_storage[4];
static union slot context_checks[16];
static union slot integrity[3];
static union slot tools_context[96];
static union slot tools_module[96];
static union slot cublaslt[16];

static bool logging;

/* Evaluates the expression inside the call guard, as exported functions do, and yields its result;
 * CUDA_ERROR_NOT_PERMITTED if the guard refuses. */
#define GUARDED(enter, expression)                                                                 \
	({                                                                                         \
		CUresult guarded = CUDA_ERROR_NOT_PERMITTED;                                       \
                                                                                                   \
		if (enter()) {                                                                     \
			guarded = (expression);                                                    \
			gpc_guard_leave();                                                         \
		}                                                                                  \
		guarded;                                                                           \
	})

/* CUDART_INTERFACE */

static CUresult
primary_context(CUcontext *ctx_p, CUdevice dev)
{
	return ctx_p ? GUARDED(gpc_guard_enter_quick, gpc_context_primary_handle(ctx_p, dev))
		     : CUDA_ERROR_INVALID_VALUE;
}

/* Runtimes before 12.0 load their images through three slots that differ in argument order. */

/* Serves two slots: one passes further arguments, which are ignored. */
static CUresult
load_wrapper(CUmodule *module_p, const void *wrapper)
{
	return GUARDED(gpc_guard_enter, gpc_module_load(module_p, wrapper));
}

static CUresult
load_fatbin_with(const void *fatbin, CUmodule *module_p, void *a, void *b, uint32_t c)
{
	return GUARDED(gpc_guard_enter, gpc_module_load(module_p, fatbin));
}

/* The shared runtimes of CUDA 13.1 and later call this slot first, and every call fails if it
 * fails: it makes the driver's compilers ready, which here are the daemon's. */
static CUresult
load_compilers(void)
{
	return CUDA_SUCCESS;
}

/* RUNTIME_HOOKS: flags by which a tool requests callbacks; none is ever set. */

static void
callback_flags(uint32_t **flags_p, size_t *count_p)
{
	static uint32_t flags[RUNTIME_CALLBACKS];

	*flags_p = flags;
	*count_p = RUNTIME_CALLBACKS; /* in elements, not bytes */
}

static void
event_flags(uint32_t **flags_p, size_t *count_p)
{
	static uint32_t flags[RUNTIME_EVENTS];

	*flags_p = flags;
	*count_p = RUNTIME_EVENTS;
}

/* TOOLS_TLS */

static CUresult
thread_context(CUcontext *ctx_p)
{
	if (!ctx_p)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx_p = gpc_context_get_current_token();
	return CUDA_SUCCESS;
}

/* CONTEXT_STORAGE: a NULL context means the current context. */

static CUresult
storage_put(CUcontext ctx, void *key, void *value, gpc_context_storage_destructor *destructor)
{
	if (!ctx)
		ctx = gpc_context_get_current_token();
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	return GUARDED(gpc_guard_enter_quick, gpc_context_storage_put(ctx, key, value, destructor));
}

static CUresult
storage_delete(CUcontext ctx, void *key)
{
	if (!ctx)
		ctx = gpc_context_get_current_token();
	return ctx ? GUARDED(gpc_guard_enter_quick, gpc_context_storage_delete(ctx, key))
		   : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult
storage_get(void **value_p, CUcontext ctx, void *key)
{
	if (!ctx)
		ctx = gpc_context_get_current_token();
	return ctx ? gpc_context_storage_get(value_p, ctx, key) : CUDA_ERROR_INVALID_CONTEXT;
}

/* CONTEXT_CHECKS: a result of 0 lets the runtime continue, for each of the checks. */

static CUresult
check_context(CUcontext ctx, uint32_t *answer_p, const void **more_p)
{
	if (answer_p)
		*answer_p = 0;
	return CUDA_SUCCESS;
}

static uint32_t
check_nothing(void)
{
	return 0;
}

/* INTEGRITY */

static CUresult
integrity_get_digest(uint32_t version, uint64_t seconds, uint8_t answer[GPC_INTEGRITY_LEN])
{
	struct gpc_device_identity devices[DEVICES_MAX];
	struct gpc_integrity_input input = {
		.version = version,
		.process_id = (uint32_t)getpid(),
		.thread_id = (uint32_t)(uintptr_t)pthread_self(),
		.cudart_table = (uintptr_t)cudart_interface,
		.integrity_table = (uintptr_t)integrity,
		.integrity_function = (uintptr_t)integrity[1].call,
		.seconds = seconds,
		.devices = devices,
	};

	if (!gpc_is_initialized())
		return CUDA_ERROR_NOT_INITIALIZED;
	input.driver_version = (uint32_t)gpc_driver_version();
	input.device_count = (size_t)gpc_devices_get_identity(devices, DEVICES_MAX);
	gpc_integrity_digest(&input, answer);
	return CUDA_SUCCESS;
}

/* TOOLS_CONTEXT, for cuBLAS, cuBLASLt and cuFFT */

static CUresult
context_number(CUcontext ctx, uint64_t *id_p)
{
	if (ctx)
		return GUARDED(gpc_guard_enter_quick, gpc_context_id(ctx, id_p));
	*id_p = 0;
	return CUDA_SUCCESS;
}

/* cuBLAS obtains an internal stream object and queries one value of it; it never dereferences the
 * object. */
static CUresult
stream_object(CUcontext ctx, CUstream stream, const void **object_p)
{
	static const char of_default_stream;

	*object_p = stream ? (const void *)stream : &of_default_stream;
	return CUDA_SUCCESS;
}

static CUresult
stream_object_value(CUcontext ctx, const void *object, uint64_t *value_p)
{
	*value_p = 0;
	return CUDA_SUCCESS;
}

/* TOOLS_MODULE, for cuFFT: the return value is a count, not a CUresult. */

static int
each_function(CUcontext ctx, CUmodule module,
	      void (*callback)(void *opaque, CUfunction function, uint64_t number), void *opaque)
{
	return gpc_module_each_function(module, callback, opaque);
}

/* All other slots contain a function of their own each, so that the log can identify the slot. */

struct table {
	unsigned char id[16];
	const char *name;
	union slot *slots;
	size_t slot_count;
	bool ends_with_null; /* and slot 0 contains no size */
	const slot_function *unfilled;
	struct {
		size_t slot;
		slot_function function;
	} filled[6];
};

static const struct table tables[TABLE_COUNT];

/* number, which encodes table and slot, is the last parameter so that the callers need not move
 * their arguments to other registers. */
static CUresult __attribute__((noinline))
slot_unsupported(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, int number)
{
	if (logging)
		(void)fprintf(stderr, "gpupool: %s[%d](%#jx, %#jx, %#jx, %#jx, %#jx) unsupported\n",
			      tables[number / SLOTS_MAX].name, number % SLOTS_MAX, (uintmax_t)a,
			      (uintmax_t)b, (uintmax_t)c, (uintmax_t)d, (uintmax_t)e);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Actual callers may pass fewer arguments; the surplus values in the log are then meaningless. */
#define DEFINE(table, tens, ones)                                                                  \
	static CUresult unfilled_##table##_##tens##ones(uintptr_t a, uintptr_t b, uintptr_t c,     \
							uintptr_t d, uintptr_t e)                  \
	{                                                                                          \
		return slot_unsupported(a, b, c, d, e, table * SLOTS_MAX + 10 * tens + ones);      \
	}
#define LIST(table, tens, ones) (slot_function) unfilled_##table##_##tens##ones,

/* clang-format off */
#define TEN(X, table, tens)                                                                        \
	X(table, tens, 0) X(table, tens, 1) X(table, tens, 2) X(table, tens, 3) X(table, tens, 4)  \
	X(table, tens, 5) X(table, tens, 6) X(table, tens, 7) X(table, tens, 8) X(table, tens, 9)
#define TWENTY(X, table) TEN(X, table, 0) TEN(X, table, 1)
#define HUNDRED(X, table)                                                                          \
	TWENTY(X, table) TEN(X, table, 2) TEN(X, table, 3) TEN(X, table, 4) TEN(X, table, 5)       \
	TEN(X, table, 6) TEN(X, table, 7) TEN(X, table, 8) TEN(X, table, 9)

TWENTY(DEFINE, CUDART_INTERFACE)
TWENTY(DEFINE, RUNTIME_HOOKS)
TEN(DEFINE, TOOLS_TLS, 0)
TEN(DEFINE, CONTEXT_STORAGE, 0)
TWENTY(DEFINE, CONTEXT_CHECKS)
TEN(DEFINE, INTEGRITY, 0)
HUNDRED(DEFINE, TOOLS_CONTEXT)
HUNDRED(DEFINE, TOOLS_MODULE)
TWENTY(DEFINE, CUBLASLT)
/* clang-format on */

#define SLOTS(array) .slots = (array), .slot_count = sizeof(array) / sizeof((array)[0])
#define UNFILLED(...)                                                                              \
	.unfilled = (const slot_function[])                                                        \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define FILLED(number, function)                                                                   \
	{                                                                                          \
		(number), (slot_function)(function)                                                \
	}

static const struct table tables[TABLE_COUNT] = {
	[CUDART_INTERFACE] = {
		.id = { 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
			0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9 },
		.name = "cudart_interface",
		SLOTS(cudart_interface),
		UNFILLED(TWENTY(LIST, CUDART_INTERFACE)),
		.filled = { FILLED(1, load_wrapper), FILLED(2, primary_context),
			    FILLED(6, load_wrapper), FILLED(8, load_fatbin_with),
			    FILLED(12, load_compilers) },
	},
	[RUNTIME_HOOKS] = {
		.id = { 0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74,
			0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66 },
		.name = "runtime_hooks",
		SLOTS(runtime_hooks),
		UNFILLED(TWENTY(LIST, RUNTIME_HOOKS)),
		.filled = { FILLED(2, callback_flags), FILLED(6, event_flags) },
	},
	[TOOLS_TLS] = {
		.id = { 0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47,
			0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc },
		.name = "tools_tls",
		SLOTS(tools_tls),
		UNFILLED(TEN(LIST, TOOLS_TLS, 0)),
		.filled = { FILLED(2, thread_context) },
	},
	[CONTEXT_STORAGE] = {
		.id = { 0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11,
			0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93 },
		.name = "context_storage",
		SLOTS(context_storage),
		.ends_with_null = true,
		UNFILLED(TEN(LIST, CONTEXT_STORAGE, 0)),
		.filled = { FILLED(0, storage_put), FILLED(1, storage_delete),
			    FILLED(2, storage_get) },
	},
	[CONTEXT_CHECKS] = {
		.id = { 0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43,
			0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e },
		.name = "context_checks",
		SLOTS(context_checks),
		UNFILLED(TWENTY(LIST, CONTEXT_CHECKS)),
		.filled = { FILLED(2, check_context), FILLED(3, check_nothing) },
	},
	[INTEGRITY] = {
		.id = { 0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b,
			0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2 },
		.name = "integrity",
		SLOTS(integrity),
		UNFILLED(TEN(LIST, INTEGRITY, 0)),
		.filled = { FILLED(1, integrity_get_digest) },
	},
	[TOOLS_CONTEXT] = {
		.id = { 0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48,
			0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2 },
		.name = "tools_context",
		SLOTS(tools_context),
		UNFILLED(HUNDRED(LIST, TOOLS_CONTEXT)),
		.filled = { FILLED(4, context_number), FILLED(39, stream_object_value),
			    FILLED(51, stream_object) },
	},
	[TOOLS_MODULE] = {
		.id = { 0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d,
			0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e },
		.name = "tools_module",
		SLOTS(tools_module),
		UNFILLED(HUNDRED(LIST, TOOLS_MODULE)),
		.filled = { FILLED(7, each_function) },
	},
	/* cuBLASLt crashes without this table, but works with a table in which every function
	 * fails. */
	[CUBLASLT] = {
		.id = { 0x17, 0x34, 0xdc, 0x26, 0x80, 0x0d, 0x47, 0x45,
			0x87, 0x26, 0xc0, 0xf1, 0xe7, 0xdd, 0x8b, 0xca },
		.name = "cublaslt",
		SLOTS(cublaslt),
		UNFILLED(TWENTY(LIST, CUBLASLT)),
	},
};

static void
table_fill(const struct table *table)
{
	size_t last = table->slot_count - 1;

	for (size_t i = 0; i <= last; i++)
		table->slots[i].call = table->unfilled[i];
	for (size_t i = 0; table->filled[i].function; i++)
		table->slots[table->filled[i].slot].call = table->filled[i].function;
	if (table->ends_with_null)
		table->slots[last].call = NULL;
	else
		table->slots[0].bytes = table->slot_count * sizeof(table->slots[0]);
}

static void
tables_fill(void)
{
	const char *log = gp_environment_get("GPUPOOL_LOG");

	logging = log && strstr(log, "tables");
	for (size_t i = 0; i < TABLE_COUNT; i++)
		table_fill(&tables[i]);
}

static const struct table *
table_find(const CUuuid *id)
{
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		if (memcmp(tables[i].id, id->bytes, sizeof(tables[i].id)) == 0)
			return &tables[i];
	}
	return NULL;
}

static void
table_log_request(const CUuuid *id, const struct table *table)
{
	char text[2 * sizeof(id->bytes) + 1];

	for (size_t i = 0; i < sizeof(id->bytes); i++)
		(void)snprintf(text + 2 * i, 3, "%02x", (unsigned char)id->bytes[i]);
	(void)fprintf(stderr, "gpupool: table %s %s\n", text, table ? table->name : "refused");
}

CUresult
gpc_export_table_get(const void **table_p, const CUuuid *id)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct table *table;

	if (!table_p || !id)
		return CUDA_ERROR_INVALID_VALUE;
	(void)pthread_once(&once, tables_fill);
	table = table_find(id);
	if (logging)
		table_log_request(id, table);
	*table_p = table ? table->slots : NULL;
	return table ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
