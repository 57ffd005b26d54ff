/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA user objects (CUuserObject): reference-counted objects of the application with a destructor,
 * to which graphs can hold references.
 *
 * Clones and executable graphs share the references of their graph.
 * Ownership: an object is destroyed with its last reference.
 * Threads: guarded by gpc_graphs_lock. Destructors run without the lock, in gpc_graphs_end() or on
 * the thread of host functions.
 */
#ifndef GPC_USER_OBJECT_H
#define GPC_USER_OBJECT_H

#include "client/graph/graph.h"

#include <cuda.h>
#include <stdbool.h>

struct gpc_user_object;

/* A destructor to be called when the lock is released; the function may free this struct. */
struct gpc_user_destructor {
	struct gpc_user_destructor *next;
	CUhostFn destroy;
	void *data;
	bool owned; /* allocated by user_object.c */
};

/* References of a graph to one object. */
struct gpc_user_object_ref {
	struct gpc_user_object_ref *next;
	struct gpc_user_object *object;
	unsigned int count;
};

/* Adds the same references for a clone. Returns CUDA_ERROR_OUT_OF_MEMORY on failure. */
CUresult gpc_user_object_refs_clone(const struct gpc_user_object_ref *users,
				    struct gpc_user_object_ref **copy_p) GP_LOCKED(gpc_graphs_lock);
/* Releases all references. */
void gpc_user_object_refs_release(struct gpc_user_object_ref **users_p) GP_LOCKED(gpc_graphs_lock);

/* Queues a destructor, in the caller's memory. */
void gpc_user_destructors_add(struct gpc_user_destructor *ended) GP_LOCKED(gpc_graphs_lock);
/* Return the queued destructors and clear the queue; and, called without the lock, run them. */
struct gpc_user_destructor *gpc_user_destructors_pop_all(void) GP_LOCKED(gpc_graphs_lock);
void gpc_user_destructors_run(struct gpc_user_destructor *list);

/* Returns whether destroying the graph may destroy user objects. */
bool gpc_graph_has_user_objects(const struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Destroys a graph that is unknown to the application when all work given to the context's session
 * so far is done, on the thread that runs host functions. If the session is over, its objects are
 * leaked. Called without the lock. */
void gpc_graph_destroy_later(struct gpc_graph *graph, struct gpc_context *context);

#endif /* GPC_USER_OBJECT_H */
