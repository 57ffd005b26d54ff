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
struct gpc_users_ended {
	struct gpc_users_ended *next;
	CUhostFn destroy;
	void *data;
	bool owned; /* of user_object.c's own memory */
};

/* References that a graph holds to one object. */
struct gpc_user {
	struct gpc_user *next;
	struct gpc_user_object *object;
	unsigned int count;
};

/* The same references for a clone. */
CUresult gpc_users_share(const struct gpc_user *users, struct gpc_user **copy_p)
	GP_LOCKED(gpc_graphs_lock);
/* Drops all; the last one ends its object. */
void gpc_users_release(struct gpc_user **users_p) GP_LOCKED(gpc_graphs_lock);

/* One more that has ended, in the caller's memory. */
void gpc_users_add_ended(struct gpc_users_ended *ended) GP_LOCKED(gpc_graphs_lock);
/* The objects that have ended since the last call, and, without the lock, their functions. */
struct gpc_users_ended *gpc_users_take_ended(void) GP_LOCKED(gpc_graphs_lock);
void gpc_users_end(struct gpc_users_ended *list);

/* Whether the end of the graph could end objects of the application. */
bool gpc_graph_has_users(const struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Destroys a graph that nobody has a name for when what the context's session was given so far is
 * done, in the thread that runs host functions.  Of a session that is over its objects stay.
 * Without the lock. */
void gpc_graph_destroy_later(struct gpc_graph *graph, struct gpc_context *context);

#endif /* GPC_USER_OBJECT_H */
