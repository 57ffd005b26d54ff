/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User objects: counted things of the application whose end a function of its own sees to.  A
 * graph may hold references, which its clones and executables share.
 */
#ifndef GPC_USER_OBJECT_H
#define GPC_USER_OBJECT_H

#include "client/graph/graph.h"

#include <cuda.h>
#include <stdbool.h>

struct gpc_context;
struct gpc_user_object;

/* What is to be called when the lock is free; the function may free it. */
struct gpc_user_destructor {
	struct gpc_user_destructor *next;
	CUhostFn destroy;
	void *data;
	bool owned; /* of user_object.c's own memory */
};

/* References that a graph holds to one object. */
struct gpc_user_object_ref {
	struct gpc_user_object_ref *next;
	struct gpc_user_object *object;
	unsigned int count;
};

/* The same references for a clone. */
CUresult gpc_user_object_refs_clone(const struct gpc_user_object_ref *users,
				    struct gpc_user_object_ref **copy_p) GP_LOCKED(gpc_graphs_lock);
/* Drops all; the last one ends its object. */
void gpc_user_object_refs_release(struct gpc_user_object_ref **users_p) GP_LOCKED(gpc_graphs_lock);

/* One more that has ended, in the caller's memory. */
void gpc_user_destructors_add(struct gpc_user_destructor *ended) GP_LOCKED(gpc_graphs_lock);
/* The objects that have ended since the last call, and, without the lock, their functions. */
struct gpc_user_destructor *gpc_user_destructors_pop_all(void) GP_LOCKED(gpc_graphs_lock);
void gpc_user_destructors_run(struct gpc_user_destructor *list);

/* Whether the end of the graph could end objects of the application. */
bool gpc_graph_has_user_objects(const struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Destroys a graph that nobody has a name for when what the context's session was given so far is
 * done, in the thread that runs host functions.  Of a session that is over its objects stay.
 * Without the lock. */
void gpc_graph_destroy_later(struct gpc_graph *graph, struct gpc_context *context);

#endif /* GPC_USER_OBJECT_H */
