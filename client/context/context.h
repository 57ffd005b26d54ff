/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and devices of the application, and the functions with which every CUDA call starts.
 *
 * A context is primary (one per device), created by cuCtxCreate(), or the context of a green
 * context (client/api/green_context.h); all share the address space of the device. Creating a
 * context is local. Activating it creates it in the daemon, which then knows its wire ID; this
 * happens on first use.
 *
 * Ownership: a context object is never freed (except in the child of a fork), because a thread may
 * still have a destroyed one as its current context. So pointers to contexts and devices stay valid
 * without a reference.
 * Threads: any thread may call. The current context and the stack of contexts belong to the thread.
 * A context's lock guards its activation and its destruction. The functions that acquire it are
 * noted.
 * Errors: functions that return CUresult return CUDA_SUCCESS or the errors stated with the
 * function; out parameters are undefined after an error.
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
	atomic_uint_fast64_t mapped; /* bytes in mappings; used by client/memory/memory.c */
	atomic_bool exhausted;       /* the daemon could not grant more, so no more is requested */
	pthread_mutex_t lock;        /* held by the thread that starts or polls `request` */
	struct gpc_request
		request;       /* request to the daemon for more memory; no thread waits for it */
	atomic_bool requested; /* `request` is in flight */
};

/* A device of the pool. Constant after gpc_devices_create() (device.h), except for the atomic
 * members and `allowance`. Devices that CUDA_VISIBLE_DEVICES hides have one, too. */
struct gpc_device {
	int ordinal; /* CUdevice in the application, from 0; those of hidden devices follow, and are
			not valid there */
	int remote;  /* the daemon's number of the device */
	struct gpc_session *session; /* session with the device's daemon */
	struct gpc_context
		*primary; /* never NULL; exists, with its handle, as long as the device */
	const char *name; /* owned, as are `attributes`, `limits` and `links` */
	CUuuid uuid;
	char pci_bus_id[16];
	int pci_domain, pci_bus, pci_device;
	uint64_t total_memory; /* bytes */
	/* The daemon may have to create a context for the next use of the device, which may fail.
	 */
	atomic_bool no_context;
	atomic_uint_fast64_t granted; /* bytes granted in the Welcome for the first context; 0 after
					 it has taken them */
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
				   (client/memory/peer_access.h) */
	const int32_t
		*links; /* link_count values: GP_LINK_ATTRIBUTES for each of the daemon's devices */
	int link_count;
	_Atomic uint32_t peers_enabled; /* devices whose memory this device can access in the
					   daemon; a mask like `peers` */
};

/* A context. Members that change are guarded by `lock`, atomic, or accessed with __atomic
 * functions, unless noted otherwise. */
struct gpc_context {
	struct gpc_handle handle;
	struct gpc_device *device;
	struct gpc_scope
		scope; /* session and wire ID; the ID is written with `lock` held; ID 0: inactive */
	struct gpc_stream *legacy; /* its NULL stream; NULL: inactive */
	struct gpc_context
		*parent; /* for a green context, the primary context, to which everything except
			    streams belongs; NULL: not a green context, or a destroyed one;
			    client/api/green_context.c sets and clears it */
	void *green;     /* token of the CUgreenCtx; NULL: not a green context */
	bool primary;
	bool destroyed; /* destroyed; for a primary context: reset, until cuDevicePrimaryCtxRetain()
			   clears it; written with `lock` held, gpc_context_lookup() reads it
			   without */
	int retained;   /* for a primary context, the references by cuDevicePrimaryCtxRetain(),
			   guarded by `lock`; for another, 1 plus those by cuCtxAttach() */
	uint64_t number; /* the ID that cuCtxGetId() returns, from 1, unique in the process;
			    constant */
	/* Work number (client/session/session.h) up to which the work of the context's streams is
	 * done, and its changes to replicated host memory have arrived. */
	atomic_uint_fast64_t done;
	/* Work number up to which the program may consider the work of the context's streams done
	 * (client/stream/sync.h). */
	atomic_uint_fast64_t implied;
	/* Work number of the last record that gave work to a destroyed stream, if the stream was
	 * destroyed before the work was done; 0: none. */
	atomic_uint_fast64_t left;
	unsigned int flags; /* flags of cuCtxCreate() or cuCtxSetFlags() or, for a primary context,
			       of cuDevicePrimaryCtxSetFlags(); without a lock, as the activation
			       uses the last value */
	unsigned int api_version; /* as cuCtxGetApiVersion() returns it */
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	uint64_t limits[16]; /* indexed by CUlimit, as set by the program */
	CUstream
		managed_stream; /* stream for copies of its managed memory; NULL: not yet created */
	pthread_mutex_t lock;
	struct gpc_context *next; /* next in context.c's list of all contexts; NULL: last */
};

/* Returns whether the context exists in the daemon. May change at any time unless the context's
 * lock is held. */
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
 * context's life cycle. client/entry/context_parts.c lists the parts. The parts are called in the
 * order of that list. A function may be NULL. All functions except leave() are called with the
 * context's lock held.
 */
struct gpc_context_part {
	/* Called first when the context is being destroyed or reset, without its lock. May wait,
	 * and may destroy other contexts. */
	void (*leave)(struct gpc_context *context);
	/* Called before the context is activated. Prepares objects that the daemon creates together
	 * with it, and stores their parameters in args. After an error the context is not
	 * activated, and the remaining parts are not prepared. */
	CUresult (*prepare)(struct gpc_context *context, struct gp_args_gpContextCreate *args);
	/* Called for each part after the attempt to activate. success: whether the context is now
	 * active; if it is not, frees what this part's prepare() has created, which may not have
	 * been called. */
	void (*created)(struct gpc_context *context, const struct gp_args_gpContextCreate *args,
			bool success);
	/* Called after leave() when the context is being destroyed or reset, also if it is
	 * inactive. If it is active, calls in it are still possible. */
	void (*unload)(struct gpc_context *context);
	/* Called after unload(), only if the context was active, after the call that destroys it in
	 * the daemon was posted. The wire IDs of its objects may therefore be reused. */
	void (*drop_context)(struct gpc_context *context);
};

/* Registers the parts: `count` elements of list, which is not copied and must be static. Called
 * once, by client/entry/context_parts.c, while the library is loaded. */
void gpc_context_set_parts(const struct gpc_context_part *list, size_t count);

/* Number of contexts that exist in daemons, green contexts included. */
extern atomic_uint gpc_contexts_active;

/* Returns the number of devices that the program sees; 0 before gpc_devices_create() (device.h). */
int gpc_device_count(void);
struct gpc_device *gpc_device_get(CUdevice ordinal); /* returns NULL if the ordinal is invalid */
/* First step of a CUDA function on a device that needs no context: calls gpc_enter_local() and
 * gpc_device_get(). Returns CUDA_ERROR_INVALID_DEVICE if the ordinal is invalid, or an error of
 * gpc_enter_local(). */
CUresult gpc_device_enter(CUdevice ordinal, struct gpc_device **device_p);
/* Returns the properties as cuDeviceGetProperties() reports them. */
CUdevprop gpc_device_properties(const struct gpc_device *device);
/* Returns the value of an attribute, or 0 if the daemon's driver does not know it. */
int gpc_device_attribute(const struct gpc_device *device, CUdevice_attribute attribute);
/* Returns the size of the device's memory in bytes, at most UINT32_MAX, for the first version of
 * cuDeviceTotalMem(). */
unsigned int gpc_device_total_memory_32(const struct gpc_device *device);

/*
 * First step of a CUDA function that needs a context: checks that the call is permitted, and stores
 * the current context in *context_p, or, if that is a green context, its primary one. The context
 * is borrowed, and is activated before, which may block on the daemon. Nothing has to be released
 * after any gpc_enter...() function.
 * Errors: CUDA_ERROR_NOT_INITIALIZED: before cuInit() or after a fork; CUDA_ERROR_DEINITIALIZED: at
 * the process's exit; CUDA_ERROR_NOT_PERMITTED: inside a host function or log callback of the
 * program; the sticky error of the current context's session, or, without one, of the first
 * session; CUDA_ERROR_INVALID_CONTEXT: no current context; errors of gpc_context_activate().
 */
CUresult gpc_enter(struct gpc_context **context_p);
/* First step of a CUDA function that needs no current context but the session, as it may send
 * calls. Returns CUDA_SUCCESS or an error of gpc_enter(), except those about the context. */
CUresult gpc_enter_initialized(void);
/* First step of a CUDA function that is handled locally, such as a query about devices: it is also
 * permitted inside a host function and in a failed session. Returns CUDA_SUCCESS, or
 * CUDA_ERROR_NOT_INITIALIZED or CUDA_ERROR_DEINITIALIZED as gpc_enter() does. */
CUresult gpc_enter_local(void);

/*
 * Stores the context of a handle (token) in *context_p (borrowed). A NULL token means the current
 * context. The context may be inactive.
 * Errors: CUDA_ERROR_INVALID_CONTEXT: invalid handle or no current context;
 * CUDA_ERROR_CONTEXT_IS_DESTROYED: the token is NULL, and the current context, which is not
 * primary, has been destroyed.
 */
CUresult gpc_context_lookup(CUcontext token, struct gpc_context **context_p);
/* First step of a CUDA function on a context that is handled locally: calls gpc_enter_local(), then
 * gpc_context_lookup(), and returns their errors. The context is not activated. */
CUresult gpc_context_enter(CUcontext token, struct gpc_context **context_p);
/* Like gpc_context_enter(), for the current context. */
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

/* First check of generated functions that need a context (GP_PRECHECK in codegen/api). Returns
 * CUDA_SUCCESS, an error of gpc_enter_initialized(), or CUDA_ERROR_INVALID_CONTEXT if there is no
 * current context. */
CUresult gpc_context_require(void);
/* First check of the first version of cuCtxPushCurrent() (GP_PRECHECK in codegen/api). Returns
 * CUDA_SUCCESS, an error of gpc_enter_local(), or CUDA_ERROR_INVALID_CONTEXT unless the token is
 * that of a context that the first version of cuCtxCreate() has created. */
CUresult gpc_context_require_v1(CUcontext token);

/* Creates a context object with a handle; it is neither current nor active. Returns the context, or
 * NULL if out of memory or if 2^20 - 1 handles of contexts exist. gpc_context_reset() and then
 * gpc_handle_remove() destroy it; only gpc_contexts_drop_all() frees it. */
struct gpc_context *gpc_context_create(struct gpc_device *device, unsigned int flags, bool primary);
/* Creates the context in the daemon, if it is not active; gpc_enter() calls it. Acquires the
 * context's lock, and may block on the daemon. Returns CUDA_SUCCESS,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED, an error of a prepare(), such as CUDA_ERROR_OUT_OF_MEMORY, or an
 * error of the call to the daemon (client/session/call.h). After an error the context remains
 * inactive and may be activated later. */
CUresult gpc_context_activate(struct gpc_context *context);
/* Destroys everything that belongs to the context, and the context in the daemon; sets `destroyed`.
 * Calls the destructors of context_storage.h first, then the functions of the parts. The struct and
 * its handle stay. A primary context can be activated again after `destroyed` has been cleared.
 * Called without the context's lock, which it acquires; may block on the daemon. */
void gpc_context_reset(struct gpc_context *context);

/* Pushes the context on the calling thread's stack of contexts, whose top is the current context.
 * Returns CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY with the stack unchanged. */
CUresult gpc_context_push(struct gpc_context *context);
struct gpc_context *
gpc_context_pop(void); /* removes and returns the top; NULL: the stack is empty */
/* Replaces the top of the stack, or pops it if context is NULL. Always returns CUDA_SUCCESS. */
CUresult gpc_context_set_current(struct gpc_context *context);

/* Frees all contexts and their handles, but none of the objects that belong to them. Only for the
 * child of a fork, which has one thread, and for tests. */
void gpc_contexts_drop_all(void);

/* Set by generated code while the thread executes a _ptds or _ptsz entry point, where stream 0
 * means the per-thread default stream. */
extern __thread bool gpc_per_thread_default __attribute__((tls_model("initial-exec")));

#endif /* GPC_CONTEXT_H */
