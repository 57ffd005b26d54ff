/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and devices of the application, and the functions with which every CUDA call starts.
 *
 * A context is primary (one per device, activated on first use) or created by cuCtxCreate(); both
 * share the address space of the device. Creating a context is local. Activating it creates it in
 * the daemon, which then knows its wire ID.
 *
 * Ownership: a context object is never freed (except in the child of a fork), because a thread may
 * still have a destroyed one as its current context. So pointers to contexts and devices stay valid
 * without a reference.
 * Threads: any thread may call. The current context and the stack of contexts belong to the thread.
 * A context's lock guards its activation and its destruction.
 * Errors: functions that return CUresult return CUDA_SUCCESS on success; out parameters are
 * undefined after an error.
 * Units: memory sizes in bytes.
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

/* Allowance: memory that the daemon has granted to the session on this device and that is not used
 * yet (client/memory/allowance.h). */
struct gpc_allowance {
	atomic_uint_fast64_t bytes;  /* granted and unused */
	atomic_uint_fast64_t mapped; /* bytes in mappings; used by memory.c */
	atomic_bool exhausted;       /* the daemon could not grant more, so no more is requested */
	pthread_mutex_t lock;        /* held by the thread that starts or polls the request */
	struct gpc_request request;  /* for more memory; no thread waits for it */
	atomic_bool requested;       /* the request is in flight */
};

/* A device of the pool. Constant after gpc_devices_create() (device.h), except for the atomic
 * members and `allowance`. */
struct gpc_device {
	int ordinal;                 /* CUdevice in the application, from 0 */
	int remote;                  /* ordinal on the daemon's side */
	struct gpc_session *session; /* session with the device's daemon */
	struct gpc_context
		*primary; /* primary context; its handle always exists; activated on first use */
	const char *name; /* owned, as are `attributes`, `limits` and `links` */
	CUuuid uuid;
	char pci_bus_id[16];
	int pci_domain, pci_bus, pci_device;
	uint64_t total_memory;        /* bytes */
	atomic_uint_fast64_t granted; /* bytes granted in the Welcome, for the first context */
	struct gpc_allowance allowance;
	/* bytes of device memory that this client caches unused, and the last such count that was
	 * reported to the daemon */
	atomic_uint_fast64_t cached_bytes, cached_reported;
	int priority_least, priority_greatest;
	int attribute_count;
	const int32_t *attributes; /* attribute_count values, indexed by CUdevice_attribute */
	int limit_count;
	const uint64_t *limits; /* limit_count default values, indexed by CUlimit */
	uint32_t peers;         /* devices with possible peer access: bit i is the daemon's device i
				   (memory/peer_access.h) */
	const int32_t
		*links; /* link_count values: GP_LINK_ATTRIBUTES for each of the daemon's devices */
	int link_count;
	_Atomic uint32_t peers_enabled; /* devices whose memory this device can access in the
					   daemon; a mask like `peers` */
};

/* A context. Members that change are guarded by `lock` or atomic, unless noted otherwise. */
struct gpc_context {
	struct gpc_handle handle;
	struct gpc_device *device;
	struct gpc_scope
		scope; /* session and wire ID; the ID is written under `lock`; 0: inactive */
	struct gpc_stream *legacy;  /* its NULL stream; NULL: inactive */
	struct gpc_context *parent; /* for a green context, the primary context, to which everything
				       except streams belongs; NULL: not a green context */
	void *green;                /* token of the CUgreenCtx; NULL: not a green context */
	bool primary;
	bool destroyed; /* destroyed permanently; for a primary context: reset and not retained
			   since */
	int retained; /* number of references by cuDevicePrimaryCtxRetain(), for a primary context,
			 or by cuCtxAttach() */
	uint64_t number; /* the ID that cuCtxGetId() returns */
	/* Work that was given to the context's streams up to this work number (session.h) is done,
	 * and its changes to replicated host memory have arrived. */
	atomic_uint_fast64_t done;
	/* Work number up to which the program may consider the work of the context's streams done
	 * (client/stream/sync.h). */
	atomic_uint_fast64_t implied;
	/* Work number of the last record that gave work to a stream that was then destroyed before
	 * the work was done; 0: none. */
	atomic_uint_fast64_t left;
	unsigned int flags;       /* flags of cuCtxCreate() */
	unsigned int api_version; /* as cuCtxGetApiVersion() returns it */
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	uint64_t limits[16]; /* indexed by CUlimit, as set by the program */
	CUstream
		managed_stream; /* stream for copies of its managed memory; NULL: not yet created */
	pthread_mutex_t lock;
	struct gpc_context *next; /* next in the list of all contexts ever created; NULL: last */
};

/* Returns whether the context exists in the daemon. */
static inline bool
gpc_context_is_active(const struct gpc_context *context)
{
	return __atomic_load_n(&context->scope.context, __ATOMIC_ACQUIRE) != 0;
}

/* Returns whether objects of `other` also belong to `context`: it is the same context, or a green
 * context of it. `other` may be NULL. */
static inline bool
gpc_context_covers(const struct gpc_context *context, const struct gpc_context *other)
{
	return other == context || (other && other->parent == context);
}

/* Returns the scope for calls in the context; it lives as long as the context. Returns NULL for
 * NULL. */
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
	/* Called without the context's lock, before it is destroyed or reset. */
	void (*leave)(struct gpc_context *context);
	/* Called before the context is activated. Prepares what the daemon creates together with
	 * it, and stores its parameters in args. After an error the context is not activated, and
	 * the remaining parts are not prepared. */
	CUresult (*prepare)(struct gpc_context *context, struct gp_args_gpContextCreate *args);
	/* Called after all prepare(), also after an error, with the outcome. If success is false,
	 * frees what prepare() has created. */
	void (*created)(struct gpc_context *context, const struct gp_args_gpContextCreate *args,
			bool success);
	/* Called when the context is being destroyed; calls in it are still possible. */
	void (*unload)(struct gpc_context *context);
	/* Called after the daemon was notified that an active context is destroyed, so IDs may be
	 * reused. */
	void (*drop_context)(struct gpc_context *context);
};

/* Registers the parts. Called once by entry/ while the library is loaded. The array is not copied
 * and must be static. */
void gpc_context_set_parts(const struct gpc_context_part *parts, size_t count);

/* Number of contexts that exist in daemons. */
extern atomic_uint gpc_contexts_active;

/* Returns the number of devices visible to the program after a successful cuInit(), otherwise 0. */
int gpc_device_count(void);
struct gpc_device *gpc_device_get(CUdevice ordinal); /* returns NULL if the ordinal is invalid */
/* Starts a CUDA call on a device that needs no context. Returns CUDA_ERROR_INVALID_DEVICE if the
 * ordinal is invalid, or an error of gpc_enter_local(). */
CUresult gpc_device_enter(CUdevice ordinal, struct gpc_device **device_p);
/* Returns the properties as cuDeviceGetProperties() reports them. */
CUdevprop gpc_device_properties(const struct gpc_device *device);
/* Returns the value of an attribute, or 0 if the daemon's driver does not know it. */
int gpc_device_attribute(const struct gpc_device *device, CUdevice_attribute attribute);
/* Returns the size of the device's memory in bytes, at most UINT32_MAX, for the first version of
 * cuDeviceTotalMem(). */
unsigned int gpc_device_total_memory_32(const struct gpc_device *device);

/*
 * Starts a CUDA call that needs a context: stores the current context, activated, in *context_p;
 * for a green context, its primary one. The context is borrowed. Activation may block on the
 * daemon.
 * Errors: CUDA_ERROR_NOT_INITIALIZED: before cuInit() or after a fork; CUDA_ERROR_DEINITIALIZED: at
 * the process's exit; CUDA_ERROR_NOT_PERMITTED: inside a host function; CUDA_ERROR_INVALID_CONTEXT:
 * no current context; the sticky error of the session; errors of gpc_context_activate().
 */
CUresult gpc_enter(struct gpc_context **context_p);
/* Starts a call that needs no context, for objects that belong to none. Returns CUDA_SUCCESS or an
 * error of gpc_enter(), except those about the context. */
CUresult gpc_enter_initialized(void);
/* Starts a call that is handled locally, such as a query about devices. Ignores the session's
 * sticky error. Returns CUDA_SUCCESS, or CUDA_ERROR_NOT_INITIALIZED or CUDA_ERROR_DEINITIALIZED as
 * gpc_enter() does. */
CUresult gpc_enter_local(void);

/*
 * Stores the context of a handle in *context_p (borrowed). A NULL handle means the current context.
 * Errors: CUDA_ERROR_INVALID_CONTEXT: invalid handle or no current context;
 * CUDA_ERROR_CONTEXT_IS_DESTROYED: the current context has been destroyed.
 */
CUresult gpc_context_lookup(CUcontext handle, struct gpc_context **context_p);
/* Starts a call on a context that is handled locally: calls gpc_enter_local(), then
 * gpc_context_lookup(), and returns their errors. The context is not activated. */
CUresult gpc_context_enter(CUcontext handle, struct gpc_context **context_p);
/* Starts a call on the current context, as gpc_context_enter() does with a NULL handle. */
CUresult gpc_context_enter_current(struct gpc_context **context_p);

/* Current context of the calling thread, which may have been destroyed; NULL: none. Written only by
 * context.c. */
extern __thread struct gpc_context *gpc_current_context __attribute__((tls_model("initial-exec")));

/* Returns the current context of the calling thread, or NULL. It may be inactive or destroyed. */
static inline struct gpc_context *
gpc_context_get_current(void)
{
	return gpc_current_context;
}

/* First check of calls that need a context (GP_PRECHECK in codegen/api). Returns CUDA_SUCCESS, an
 * error of gpc_enter_initialized(), or CUDA_ERROR_INVALID_CONTEXT if there is no current
 * context. */
CUresult gpc_context_require(void);
/* First check of the first version of cuCtxPushCurrent() (GP_PRECHECK in codegen/api). Returns
 * CUDA_SUCCESS, an error of gpc_enter_local(), or CUDA_ERROR_INVALID_CONTEXT unless the handle is
 * that of a context that the first version of cuCtxCreate() has created. */
CUresult gpc_context_require_v1(CUcontext handle);

/* Creates a context object that is neither current nor active. Returns the context, or NULL if
 * memory is exhausted. It is freed only by gpc_contexts_drop_all(). */
struct gpc_context *gpc_context_create(struct gpc_device *device, unsigned int flags, bool primary);
/* Creates the context in the daemon, if it is not active; gpc_enter() does so on first use. May
 * block on the daemon. Returns CUDA_SUCCESS, CUDA_ERROR_CONTEXT_IS_DESTROYED,
 * CUDA_ERROR_OUT_OF_MEMORY, or the session's error. After an error the context remains inactive and
 * may be activated later. */
CUresult gpc_context_activate(struct gpc_context *context);
/* Destroys everything that belongs to the context, and the context in the daemon; sets `destroyed`.
 * Calls the destructors of context_storage.h. The object itself stays allocated. A primary context
 * can be activated again after the caller has cleared `destroyed`. Called without the context's
 * lock. */
void gpc_context_reset(struct gpc_context *context);

/* Pushes the context on the calling thread's stack of contexts, whose top is the current context.
 * Returns CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY with the stack unchanged. */
CUresult gpc_context_push(struct gpc_context *context);
struct gpc_context *
gpc_context_pop(void); /* removes and returns the top; NULL: the stack is empty */
/* Replaces the top of the stack, or pops it if context is NULL. Returns CUDA_SUCCESS. */
CUresult gpc_context_set_current(struct gpc_context *context);

/* Frees all contexts and their handles, but none of the objects that belong to them. Only for the
 * child of a fork, which has one thread, and for tests. */
void gpc_contexts_drop_all(void);

/* Set inside a _ptds or _ptsz entry point, where stream 0 means the per-thread default stream. */
extern __thread bool gpc_per_thread_default __attribute__((tls_model("initial-exec")));

#endif /* GPC_CONTEXT_H */
