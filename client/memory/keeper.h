/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of the daemon that the program has given back and that are kept to be had again without a
 * round trip: arrays, textures, physical memory.  A keeper is of one kind and lives as long as the
 * process; who keeps an object owns its memory, and drop() gives it back for good.  What is kept is
 * told to the daemon as kept device memory is (memory.h), and goes with it.  Any thread may call;
 * drop() is called with no lock of the keeper held, and waits for nothing.
 */
#ifndef GPC_KEEPER_H
#define GPC_KEEPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_device;
struct gpc_session;

struct gpc_kept_object {
	struct gpc_kept_object *next;
	struct gpc_context *context; /* in whose name it is dropped */
	uint64_t bytes;
	uint64_t tag; /* work up to this count may use it */
};

struct gpc_keeper {
	void (*drop)(struct gpc_kept_object *object);
	bool (*same)(const struct gpc_kept_object *object, const void *wanted);
	pthread_mutex_t lock;
	struct gpc_kept_object *first; /* the oldest */
	unsigned int count;
	uint64_t bytes;
	atomic_bool listed;
	struct gpc_keeper *next; /* of all */
};

#define GPC_KEEPER(drops, is_same)                                                                 \
	{                                                                                          \
		.drop = (drops), .same = (is_same), .lock = PTHREAD_MUTEX_INITIALIZER              \
	}

/* false: it is not kept, for it is too large or the session is over: the caller drops it. */
bool gpc_keeper_put(struct gpc_keeper *keeper, struct gpc_kept_object *object,
		    struct gpc_context *context, uint64_t bytes);

/* One of this context that is the same as what is wanted, and that no work uses any more.  NULL:
 * there is none. */
struct gpc_kept_object *gpc_keeper_take(struct gpc_keeper *keeper, struct gpc_context *context,
					const void *wanted);

/* Drops those for which is_one() says so. */
void gpc_keeper_drop(struct gpc_keeper *keeper,
		     bool (*is_one)(const struct gpc_kept_object *object, const void *arg),
		     const void *arg);
void gpc_keeper_forget_context(struct gpc_keeper *keeper, const struct gpc_context *context);

/* Of all keepers. */
void gpc_keepers_give_back(const struct gpc_session *session);
uint64_t gpc_keepers_bytes(const struct gpc_device *device);

#endif /* GPC_KEEPER_H */
