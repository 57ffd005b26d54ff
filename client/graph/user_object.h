/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA user objects (CUuserObject): reference-counted objects of the application with a destructor,
 * to which graphs own references. Clones and executable graphs have references of their own to the
 * objects of their graph.
 *
 * Also the queue of destructors: memory and objects that must be destroyed without gpc_graphs_lock
 * are queued under the lock and destroyed after it is released.
 *
 * Ownership: an object is destroyed with its last reference; its destructor is then queued, or
 * never called if out of memory.
 * Threads: any thread; everything is guarded by gpc_graphs_lock. Destructors run on the thread that
 * released the lock, usually in gpc_graphs_end(), or on the thread that runs host functions
 * (client/session/host_queue.h).
 */
#ifndef GPC_USER_OBJECT_H
#define GPC_USER_OBJECT_H

#include "client/graph/graph.h"

#include <cuda.h>
#include <stdbool.h>

struct gpc_user_object;

/* A queued destructor. destroy(data) may free this struct, unless `owned` is set. */
struct gpc_user_destructor {
	struct gpc_user_destructor *next;
	CUhostFn destroy;
	void *data; /* argument of destroy() */
	bool owned; /* allocated by user_object.c, which frees it after the call */
};

/* References of a graph to one object, an element of a list that the graph owns. */
struct gpc_user_object_ref {
	struct gpc_user_object_ref *next;
	struct gpc_user_object *object;
	unsigned int count;
};

/* Adds the references in `users`, the list of a graph, to the list *copy_p of its clone, which is
 * initially NULL. Returns CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. The caller calls
 * gpc_user_object_refs_release() for *copy_p, also after a failure. */
CUresult gpc_user_object_refs_clone(const struct gpc_user_object_ref *users,
				    struct gpc_user_object_ref **copy_p) GP_LOCKED(gpc_graphs_lock);
/* Releases all references in the list and frees it; *users_p becomes NULL. */
void gpc_user_object_refs_release(struct gpc_user_object_ref **users_p) GP_LOCKED(gpc_graphs_lock);

/* Queues a destructor, which is called after the lock is released. destroy, data and owned must be
 * set. Also used for memory that must be freed without the lock. Unless `owned` is set, the struct
 * is the caller's memory, and must stay valid until the destructor is called. */
void gpc_user_destructors_add(struct gpc_user_destructor *ended) GP_LOCKED(gpc_graphs_lock);
/* Called before the lock is released: clears the queue and returns its destructors as a list, or
 * NULL if it is empty. After releasing the lock the caller passes the list to
 * gpc_user_destructors_run(). */
struct gpc_user_destructor *gpc_user_destructors_pop_all(void) GP_LOCKED(gpc_graphs_lock);
/* Calls the destructors in the list, and frees the structs that are `owned`. The last destructor
 * queued is called first. Called without the lock. Accepts NULL. */
void gpc_user_destructors_run(struct gpc_user_destructor *list);

/* Returns whether the graph or one of its inner graphs has references to user objects. */
bool gpc_graph_has_user_objects(const struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Takes over a graph that is not visible to the application, whose user objects the GPU may still
 * use, and destroys it when all work issued so far to the session of `context` is done. The graph
 * is destroyed on the thread that runs host functions. Does not wait for the work. The graph is
 * leaked if the session ends first or memory is exhausted. Called without the lock. */
void gpc_graph_destroy_later(struct gpc_graph *graph, struct gpc_context *context);

#endif /* GPC_USER_OBJECT_H */
