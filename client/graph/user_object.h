/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User objects: counted things of the application whose end a function of its own sees to.  A
 * graph may hold references, which its clones and executables share.  Under gpc_graphs_lock.
 */
#ifndef GPC_USER_OBJECT_H
#define GPC_USER_OBJECT_H

#include <cuda.h>

struct gpc_user_object;
struct gpc_users_ended;

/* References that a graph holds to one object. */
struct gpc_user {
	struct gpc_user *next;
	struct gpc_user_object *object;
	unsigned int count;
};

/* The same references for a clone. */
CUresult gpc_users_share(const struct gpc_user *users, struct gpc_user **copy_p);
/* Drops all; the last one ends its object. */
void gpc_users_release(struct gpc_user **users_p);

/* The objects that have ended since the last call, and, without the lock, their functions. */
struct gpc_users_ended *gpc_users_take_ended(void);
void gpc_users_end(struct gpc_users_ended *list);

#endif /* GPC_USER_OBJECT_H */
