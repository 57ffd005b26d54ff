/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and devices of the application, and the functions with which every CUDA call starts.
 *
 * A context is primary (one per device, activated on first use) or created by cuCtxCreate(); both
 * share the address space of the device. Creating one is local; activating it creates it in the
 * daemon.
 *
 * Ownership: a context object is never freed (except in the child of a fork), because a thread may
 * still have a destroyed one as its current context.
 * Threads: any thread may call. The current context and the stack of contexts belong to the thread.
 */
#ifndef GPC_CONTEXT_H
#define GPC_CONTEXT_H

#include "client/base/handle.h"
#include "client/session/call.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Result of cuCtxGetApiVersion() since the second version of the API. */
#define GPC_API_VERSION 3020

struct gp_args_gpContextCreate;
struct gpc_stream;

/* Allowance: memory that the daemon has granted to the session and that is not used yet
 * (memory/credit.h). */
struct gpc_allowance {
	atomic_uint_fast64_t bytes;
	atomic_uint_fast64_t mapped; /* bytes in mappings; used by memory.c */
	atomic_bool exhausted; /* the daemon could not grant more, so it is not requested again */
	pthread_mutex_t lock;  /* held to start or poll the request */
	struct gpc_request request; /* for more memory; no thread waits for it */
	atomic_bool requested;      /* the request is in flight */
};

struct gpc_device {
	int ordinal; /* CUdevice in the application */
	int remote;  /* ordinal in the daemon */
	struct gpc_session *session;
	struct gpc_context *primary; /* its handle always exists; activated on first use */
	const char *name;
	CUuuid uuid;
	char pci_bus_id[16];
	int pci_domain, pci_bus, pci_device;
	uint64_t total_memory;        /* bytes */
	atomic_uint_fast64_t granted; /* bytes granted in the Welcome, for the first context */
	struct gpc_allowance allowance;
	/* Bytes of device memory that this client caches unused, and the last count reported to the
	 * daemon. */
	atomic_uint_fast64_t cached_bytes, cached_reported;
	int priority_least, priority_greatest;
	int attribute_count;
	const int32_t *attributes; /* indexed by CUdevice_attribute */
	int limit_count;
	const uint64_t *limits; /* indexed by CUlimit */
	uint32_t peers;         /* devices with possible peer access, a mask of daemon ordinals
				   (peer_access.h) */
	const int32_t *links;   /* GP_LINK_ATTRIBUTES values for each of the daemon's devices */
	int link_count;
	_Atomic uint32_t peers_enabled; /* mask like peers: devices whose memory this one can access
					   in the daemon */
};

struct gpc_context {
	struct gpc_handle handle;
	struct gpc_device *device;
	struct gpc_scope scope;     /* its context is written under lock; 0 while inactive */
	struct gpc_stream *legacy;  /* its NULL stream; NULL while inactive */
	struct gpc_context *parent; /* of a green context: the primary context, to which everything
				       except streams belongs */
	void *green;                /* token of the CUgreenCtx; NULL if it is not a green context */
	bool primary;
	bool destroyed;  /* permanently; or, of a primary context, reset and not retained since */
	int retained;    /* reference count, of a primary context or by cuCtxAttach() */
	uint64_t number; /* the ID that cuCtxGetId() returns */
	/* Work given to its streams up to this record number is done, and its changes to replicated
	 * host memory have arrived. */
	atomic_uint_fast64_t done;
	/* The program considers work up to this record number done (client/stream/sync.h). */
	atomic_uint_fast64_t implied;
	/* The last record that gave work to a stream that was then destroyed before the work was
	 * done. */
	atomic_uint_fast64_t left;
	unsigned int flags;
	unsigned int api_version; /* as cuCtxGetApiVersion() returns it */
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	uint64_t limits[16];     /* indexed by CUlimit, as set */
	CUstream managed_stream; /* stream for copies of its managed memory; NULL: none yet */
	pthread_mutex_t lock;
	struct gpc_context *next; /* in the list of all contexts ever created */
};

/* Returns whether the context exists in the daemon. */
static inline bool
gpc_context_is_active(const struct gpc_context *context)
{
	return __atomic_load_n(&context->scope.context, __ATOMIC_ACQUIRE) != 0;
}

/* Returns whether objects of `other` also belong to `context`. */
static inline bool
gpc_context_covers(const struct gpc_context *context, const struct gpc_context *other)
{
	return other == context || (other && other->parent == context);
}

/* Accepts NULL, for which it returns NULL. */
static inline const struct gpc_scope *
gpc_context_get_scope(const struct gpc_context *context)
{
	return context ? &context->scope : NULL;
}

/*
 * A part of a context's state, that is, one kind of object or memory, with its functions for the
 * context's life cycle. A function may be NULL. All but leave() are called with the context's lock
 * held, in the order of the parts.
 */
struct gpc_context_part {
	/* The context is about to be destroyed or reset; called without its lock. */
	void (*leave)(struct gpc_context *context);
	/* The context is about to be activated. Prepares what the daemon creates with it. */
	CUresult (*prepare)(struct gpc_context *context, struct gp_args_gpContextCreate *args);
	/* Called after all prepare(), whether or not the daemon has created the context. */
	void (*created)(struct gpc_context *context, const struct gp_args_gpContextCreate *args,
			bool success);
	/* The context is being destroyed; calls in it are still possible. */
	void (*unload)(struct gpc_context *context);
	/* The daemon has been notified, so IDs may be reused. */
	void (*drop_context)(struct gpc_context *context);
};

/* Registers the parts; called by entry/ while the library is loaded. The array must be static. */
void gpc_context_set_parts(const struct gpc_context_part *parts, size_t count);

/* Number of contexts that exist in daemons. */
extern atomic_uint gpc_contexts_active;

/* Returns the number of devices visible to the program after a successful cuInit(). */
int gpc_device_count(void);
struct gpc_device *gpc_device_get(CUdevice ordinal); /* NULL: invalid ordinal */
/* Starts a call on a device. Returns CUDA_ERROR_INVALID_DEVICE if the ordinal is invalid. */
CUresult gpc_device_enter(CUdevice ordinal, struct gpc_device **device_p);
/* Returns the properties as cuDeviceGetProperties() reports them. */
CUdevprop gpc_device_properties(const struct gpc_device *device);
/* Returns 0 for an attribute that the daemon's driver does not know. */
int gpc_device_attribute(const struct gpc_device *device, CUdevice_attribute attribute);
/* For the first version of cuDeviceTotalMem(): returns the size of the device's memory in bytes, at
 * most UINT32_MAX. */
unsigned int gpc_device_total_memory_32(const struct gpc_device *device);

/*
 * Starts a CUDA call that needs a context: returns the current context, activated; for a green
 * context, its primary one.
 * Errors: CUDA_ERROR_NOT_INITIALIZED: before cuInit() or after a fork; CUDA_ERROR_NOT_PERMITTED:
 * inside a host function; CUDA_ERROR_INVALID_CONTEXT: no current context; the sticky error of the
 * session; errors of activating the context.
 */
CUresult gpc_enter(struct gpc_context **context_p);
/* Starts a call that needs no context, for objects that belong to none. Otherwise like
 * gpc_enter(). */
CUresult gpc_enter_initialized(void);
/* Starts a call that is handled locally and cannot fail, such as one about devices. Ignores the
 * sticky error. */
CUresult gpc_enter_local(void);

/* Returns the context of a handle (NULL: the current one). Errors: CUDA_ERROR_INVALID_CONTEXT;
 * CUDA_ERROR_CONTEXT_IS_DESTROYED: the current context has been destroyed. */
CUresult gpc_context_lookup(CUcontext handle, struct gpc_context **context_p);
/* Start a local call on a context; gpc_enter_local() and gpc_context_lookup() in one. */
CUresult gpc_context_enter(CUcontext handle, struct gpc_context **context_p);
CUresult gpc_context_enter_current(struct gpc_context **context_p);

/* Current context of the calling thread, or NULL. Written only by context.c. */
extern __thread struct gpc_context *gpc_current_context __attribute__((tls_model("initial-exec")));

static inline struct gpc_context *
gpc_context_get_current(void)
{
	return gpc_current_context;
}

/* First check of calls that need a context (GP_PRECHECK): returns CUDA_ERROR_INVALID_CONTEXT if
 * there is none. */
CUresult gpc_context_require(void);
/* First check of the first version of cuCtxPushCurrent() (GP_PRECHECK): returns
 * CUDA_ERROR_INVALID_CONTEXT unless the context was created by the first version of
 * cuCtxCreate(). */
CUresult gpc_context_require_v1(CUcontext handle);

/* Creates a context that is neither current nor activated. Returns NULL if out of memory. */
struct gpc_context *gpc_context_create(struct gpc_device *device, unsigned int flags, bool primary);
/* Creates the context in the daemon, if it does not exist there. gpc_enter() does so on first
 * use. */
CUresult gpc_context_activate(struct gpc_context *context);
/* Destroys everything that belongs to the context, and the context in the daemon. A primary context
 * can be activated again. */
void gpc_context_reset(struct gpc_context *context);

/* Operate on the calling thread's stack, whose top is the current context. push() may return
 * CUDA_ERROR_OUT_OF_MEMORY; set_current() replaces the top, or pops it if context is NULL. */
CUresult gpc_context_push(struct gpc_context *context);
struct gpc_context *gpc_context_pop(void); /* NULL: the stack is empty */
CUresult gpc_context_set_current(struct gpc_context *context);

/* Frees all contexts. Only for the child of a fork, which has one thread, and for tests. */
void gpc_contexts_drop_all(void);

/* Inside a _ptds or _ptsz entry point, stream 0 means the per-thread default stream. */
extern __thread bool gpc_per_thread_default __attribute__((tls_model("initial-exec")));

#endif /* GPC_CONTEXT_H */
