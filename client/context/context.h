/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and devices of the application, and the start of every call.
 *
 * A context is primary (one per device, made on first use) or made by cuCtxCreate; both share the
 * device's address space.  The current context and its stack belong to the thread.
 */
#ifndef GPC_CONTEXT_H
#define GPC_CONTEXT_H

#include "client/base/handle.h"
#include "client/wire/call.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What cuCtxGetApiVersion has answered since the API's second version. */
#define GPC_API_VERSION 3020

struct gp_args_gpContextCreate;
struct gpc_stream;

/* Memory that the daemon has granted and that nothing is made of (memory/credit.h). */
struct gpc_allowance {
	atomic_uint_fast64_t bytes;
	atomic_uint_fast64_t mapped; /* by memory.c: what there is in mappings */
	atomic_bool exhausted;       /* the daemon had none to spare: it is not asked again so */
	pthread_mutex_t lock;        /* who starts and polls the request */
	struct gpc_request request;  /* for more, for which nobody waits */
	atomic_bool requested;       /* it is under way */
};

struct gpc_device {
	int ordinal; /* the application's CUdevice */
	int remote;  /* the daemon's ordinal of it */
	struct gpc_session *session;
	struct gpc_context *primary; /* handle exists from the start; activated on first use */
	const char *name;
	CUuuid uuid;
	char pci_bus_id[16];
	int pci_domain, pci_bus, pci_device;
	uint64_t total_memory;        /* bytes */
	atomic_uint_fast64_t granted; /* so many are there already, for the first context */
	struct gpc_allowance allowance;
	/* Bytes of the device that this client keeps unused, and the last count that the daemon was
	 * told. */
	atomic_uint_fast64_t cached_bytes, cached_reported;
	int priority_least, priority_greatest;
	int attribute_count;
	const int32_t *attributes; /* by CUdevice_attribute */
	int limit_count;
	const uint64_t *limits; /* by CUlimit */
	uint32_t peers;         /* reach.h: bits of the daemon's ordinals */
	const int32_t *links;   /* GP_LINK_ATTRIBUTES for each of the daemon's devices */
	int link_count;
	_Atomic uint32_t peers_enabled; /* as peers: whose memory the daemon has given it */
};

struct gpc_context {
	struct gpc_handle handle;
	struct gpc_device *device;
	struct gpc_scope scope;    /* its context is written under lock; 0 while inactive */
	struct gpc_stream *legacy; /* its NULL stream; NULL while inactive */
	struct gpc_context
		*parent; /* of a green context, the primary one: all but streams is its */
	void *green;     /* what the application calls that; else NULL */
	bool primary;
	bool destroyed;  /* for good; or, of a primary one, reset and not retained since */
	int retained;    /* uses: of a primary context, or by cuCtxAttach */
	uint64_t number; /* cuCtxGetId */
	/* What its streams were given up to this record is done, and what that changed of mirrored
	 * memory is here. */
	atomic_uint_fast64_t done;
	/* The program takes it as done (client/stream/sync.h). */
	atomic_uint_fast64_t implied;
	/* The last record that gave work to a stream which was destroyed before that was done. */
	atomic_uint_fast64_t left;
	unsigned int flags;
	unsigned int api_version; /* cuCtxGetApiVersion */
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	uint64_t limits[16];     /* by CUlimit, as set */
	CUstream managed_stream; /* in which its managed memory travels; NULL: none yet */
	pthread_mutex_t lock;
	struct gpc_context *next; /* of all there ever were */
};

/* Whether the daemon knows it. */
static inline bool
gpc_context_is_active(const struct gpc_context *context)
{
	return __atomic_load_n(&context->scope.context, __ATOMIC_ACQUIRE) != 0;
}

/* Whether objects of the second are of the first, too. */
static inline bool
gpc_context_covers(const struct gpc_context *context, const struct gpc_context *other)
{
	return other == context || (other && other->parent == context);
}

/* NULL for none. */
static inline const struct gpc_scope *
gpc_context_get_scope(const struct gpc_context *context)
{
	return context ? &context->scope : NULL;
}

/*
 * What goes with a context: one kind of object, or memory.  Functions that are NULL have nothing to
 * do.  All but leave() are called under the context's lock, in the order of the parts.
 */
struct gpc_context_part {
	/* The context is about to go; without its lock. */
	void (*leave)(struct gpc_context *context);
	/* The context is about to be activated: sees to what the daemon makes with it. */
	CUresult (*prepare)(struct gpc_context *context, struct gp_args_gpContextCreate *args);
	/* After all prepare(): the daemon has made it, or it has not. */
	void (*created)(struct gpc_context *context, const struct gp_args_gpContextCreate *args,
			bool success);
	/* The context goes, but calls in its name are still possible. */
	void (*unload)(struct gpc_context *context);
	/* The daemon has been told: names may be used again. */
	void (*drop_context)(struct gpc_context *context);
};

/* By entry, as the library is loaded. */
void gpc_context_set_parts(const struct gpc_context_part *parts, size_t count);

/* Number of contexts that daemons know. */
extern atomic_uint gpc_contexts_active;

/* Devices after a successful cuInit. */
int gpc_device_count(void);
struct gpc_device *gpc_device_get(CUdevice ordinal); /* NULL: no such device */
/* Begins a call about a device; CUDA_ERROR_INVALID_DEVICE. */
CUresult gpc_device_enter(CUdevice ordinal, struct gpc_device **device_p);
/* What cuDeviceGetProperties() tells of it. */
CUdevprop gpc_device_properties(const struct gpc_device *device);
/* 0 for an attribute that the daemon's driver does not know. */
int gpc_device_attribute(const struct gpc_device *device, CUdevice_attribute attribute);
/* For the first cuDeviceTotalMem(): the device's memory in bytes, at most UINT32_MAX. */
unsigned int gpc_device_total_memory_32(const struct gpc_device *device);

/*
 * Every CUDA function that needs a context begins with one of these.  They check initialisation,
 * fork (CUDA_ERROR_NOT_INITIALIZED), the session's sticky error, and yield the current context,
 * activated; where that is a green one, its primary one.  CUDA_ERROR_INVALID_CONTEXT when the
 * thread has none.
 */
CUresult gpc_enter(struct gpc_context **context_p);
/* Without a context: functions of objects that belong to none. */
CUresult gpc_enter_initialized(void);
/* Without the sticky error: what is answered here and never fails, devices and the like. */
CUresult gpc_enter_local(void);

/* The object behind a CUcontext (NULL means the current one); destroyed ones are not found. */
CUresult gpc_context_lookup(CUcontext handle, struct gpc_context **context_p);
/* The same, as the start of a call, which needs not be one of the daemon's. */
CUresult gpc_context_enter(CUcontext handle, struct gpc_context **context_p);
CUresult gpc_context_enter_current(struct gpc_context **context_p);

/* The calling thread's; NULL: none.  Written here alone. */
extern __thread struct gpc_context *gpc_current_context __attribute__((tls_model("initial-exec")));

static inline struct gpc_context *
gpc_context_get_current(void)
{
	return gpc_current_context;
}

/* What calls check first that need one (GP_PRECHECK): CUDA_ERROR_INVALID_CONTEXT. */
CUresult gpc_context_require(void);
/* The first check of cuCtxPushCurrent() (GP_PRECHECK), which takes contexts of the first cuCtxCreate()
 * alone: CUDA_ERROR_INVALID_CONTEXT for others. */
CUresult gpc_context_require_v1(CUcontext handle);

/* Makes an object that is neither current nor known to the daemon; NULL: out of memory. */
struct gpc_context *gpc_context_create(struct gpc_device *device, unsigned int flags, bool primary);
/* Announces it to the daemon, if it is not; gpc_enter() does so on the first use. */
CUresult gpc_context_activate(struct gpc_context *context);
/* Destroys all that belongs to it; a primary one can be activated again. */
void gpc_context_reset(struct gpc_context *context);

/* The calling thread's stack; its top is the current context.  Set replaces the top, NULL pops. */
CUresult gpc_context_push(struct gpc_context *context);
struct gpc_context *gpc_context_pop(void); /* NULL: it is empty */
CUresult gpc_context_set_current(struct gpc_context *context);

/* In the child of a fork, which has one thread: nothing of the parent's is left. */
void gpc_contexts_drop_all(void);

/* While the thread is inside a _ptds/_ptsz entry, stream 0 means the per-thread default stream. */
extern __thread bool gpc_per_thread_default __attribute__((tls_model("initial-exec")));

#endif /* GPC_CONTEXT_H */
