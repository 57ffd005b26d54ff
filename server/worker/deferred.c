/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/deferred.h"

#include "gpd_calls.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

/* What all of a session's memory calls name together. */
#define KIND_MEMORY GPD_KIND_COUNT
#define PLACES_MAX (GPD_NAMES_MAX + 1)

/* Kept records of one name; those in front of it are in front of it everywhere. */
struct queue {
	UT_hash_handle hh;
	uint64_t key;
	struct gpd_held *head, *tail;
};

struct place {
	struct queue *queue;
	struct gpd_held *next;
};

/* Which records that came before it have to be gone, besides those of the same names. */
enum needs {
	NAMES,
	LEGACY, /* those of the legacy stream and of blocking ones */
	ALL,
};

struct gpd_held {
	struct gpd_held *prev, *next;    /* of all, in the order in which they came */
	struct gpd_held *before, *after; /* of those that the legacy stream's order is for */
	struct gpd_held *closes_before, *closes_after; /* of those that close the same */
	struct gpd_held *ready_next;
	struct gp_header header;
	uint64_t number; /* in the order in which they came */
	enum needs needs;
	enum needs closes; /* all of these that come later wait for it */
	bool legacy;       /* in the list of those */
	bool ready;        /* was put into the list of those that may be carried out */
	unsigned int place_count;
	struct place places[PLACES_MAX];
	size_t size, bulk_size;
	uint8_t *bulk;
	_Alignas(8) uint8_t fields[];
};

struct gpd_hold {
	struct gpd_held *all, *legacy; /* utlist */
	struct gpd_held *closers[ALL + 1];
	struct gpd_held *ready, **ready_end;
	struct queue *queues; /* hash; none is empty */
	uint64_t last_number;
	uint64_t cost;
};

/* What a record asks for. */
struct wish {
	struct gpd_names names;
	bool legacy;
	enum needs needs, closes;
};

static uint64_t
key_of(const struct gpd_handle *name)
{
	/* The index alone: a new object of a place waits for the end of the old one. */
	return (uint64_t)name->kind << 32 | (name->id & (GPD_HANDLE_INDEX_MAX - 1));
}

static struct queue *
queue_find(struct gpd_hold *hold, uint64_t key)
{
	struct queue *queue;

	HASH_FIND(hh, hold->queues, &key, sizeof(key), queue);
	return queue;
}

static struct queue *
queue_make(struct gpd_hold *hold, uint64_t key)
{
	struct queue *queue = queue_find(hold, key);

	if (queue)
		return queue;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return NULL;
	queue->key = key;
	HASH_ADD(hh, hold->queues, key, sizeof(queue->key), queue);
	return queue;
}

static struct place *
place_in(struct gpd_held *held, const struct queue *queue)
{
	struct place *place = held->places;

	while (place->queue != queue)
		place++;
	return place;
}

static void
queue_push(struct queue *queue, struct gpd_held *held)
{
	/* A call may give one name twice. */
	for (unsigned int i = 0; i < held->place_count; i++) {
		if (held->places[i].queue == queue)
			return;
	}
	held->places[held->place_count++] = (struct place){ .queue = queue };
	if (queue->tail)
		place_in(queue->tail, queue)->next = held;
	else
		queue->head = held;
	queue->tail = held;
}

/* It is the first one. */
static struct gpd_held *
queue_pop(struct gpd_hold *hold, struct place *place)
{
	struct queue *queue = place->queue;

	queue->head = place->next;
	if (queue->head)
		return queue->head;
	HASH_DELETE(hh, hold->queues, queue);
	free(queue);
	return NULL;
}

static bool
is_behind(const struct gpd_held *other, const struct gpd_held *held)
{
	return other && other->number < held->number;
}

static bool
may_go(const struct gpd_hold *hold, const struct gpd_held *held)
{
	for (unsigned int i = 0; i < held->place_count; i++) {
		if (held->places[i].queue->head != held)
			return false;
	}
	if (is_behind(hold->closers[ALL], held) ||
	    (held->legacy && is_behind(hold->closers[LEGACY], held)))
		return false;
	if (held->needs == ALL)
		return hold->all == held;
	return held->needs != LEGACY || hold->legacy == held;
}

static void
consider(struct gpd_hold *hold, struct gpd_held *held)
{
	if (!held || held->ready || !may_go(hold, held))
		return;
	held->ready = true;
	*hold->ready_end = held;
	hold->ready_end = &held->ready_next;
}

/* The order that the legacy stream brings with it. */
static void
needs_of_stream(const struct gpd_session *session, uint32_t id, struct wish *wish)
{
	const struct gpd_stream *stream = gpd_stream_get(session, id);
	bool waits_only = wish->names.use == GPD_STREAM_AWAITED;

	/* One that is still to be made may be a blocking one. */
	if (stream && !stream->legacy && (!stream->blocking || waits_only))
		return;
	wish->legacy = true;
	if (!stream || !stream->legacy)
		return;
	if (wish->needs < LEGACY)
		wish->needs = LEGACY;
	if (wish->closes < LEGACY && !waits_only)
		wish->closes = LEGACY;
}

/* false: it is malformed. */
static bool
make_wish(const struct gpd_session *session, const struct gp_header *header, const void *fields,
	  size_t size, struct wish *wish)
{
	memset(wish, 0, sizeof(*wish));
	if (!gpd_call_names(header->call, fields, size, &wish->names))
		return false;
	wish->needs = wish->names.behind_all ? ALL : NAMES;
	wish->closes = wish->names.before_all ? ALL : NAMES;
	for (unsigned int i = 0; i < wish->names.count; i++) {
		if (wish->names.names[i].kind == GPD_KIND_STREAM &&
		    wish->names.use != GPD_STREAM_MADE_OR_DROPPED)
			needs_of_stream(session, wish->names.names[i].id, wish);
	}
	return true;
}

static bool
must_wait(struct gpd_hold *hold, const struct wish *wish)
{
	if (wish->names.memory && queue_find(hold, (uint64_t)KIND_MEMORY << 32))
		return true;
	for (unsigned int i = 0; i < wish->names.count; i++) {
		if (queue_find(hold, key_of(&wish->names.names[i])))
			return true;
	}
	if (hold->closers[ALL] || (wish->legacy && hold->closers[LEGACY]))
		return true;
	return (wish->needs == ALL && hold->all) || (wish->needs == LEGACY && hold->legacy);
}

static bool
add_places(struct gpd_hold *hold, const struct wish *wish, struct gpd_held *held)
{
	struct queue *queues[PLACES_MAX];
	unsigned int count = 0;

	for (unsigned int i = 0; i < wish->names.count; i++)
		queues[count++] = queue_make(hold, key_of(&wish->names.names[i]));
	if (wish->names.memory)
		queues[count++] = queue_make(hold, (uint64_t)KIND_MEMORY << 32);
	for (unsigned int i = 0; i < count; i++) {
		if (!queues[i])
			return false;
	}
	for (unsigned int i = 0; i < count; i++)
		queue_push(queues[i], held);
	return true;
}

static uint64_t
cost_of(const struct gpd_held *held)
{
	return GP_HOLD_COST(sizeof(held->header) + held->size, held->bulk_size);
}

static void
enter(struct gpd_hold *hold, const struct wish *wish, struct gpd_held *held)
{
	held->needs = wish->needs;
	held->closes = wish->closes;
	held->legacy = wish->legacy;
	DL_APPEND(hold->all, held);
	if (held->legacy)
		DL_APPEND2(hold->legacy, held, before, after);
	if (held->closes != NAMES)
		DL_APPEND2(hold->closers[held->closes], held, closes_before, closes_after);
	held->number = ++hold->last_number;
	hold->cost += cost_of(held);
}

/* A copy of the record, its bulk included. */
static struct gpd_held *
copy_record(struct gpd_session *session, const struct gp_header *header, const void *fields,
	    size_t size)
{
	size_t bulk_size = gpd_session_bulk_size(session);
	struct gpd_held *held = malloc(sizeof(*held) + size);

	if (!held)
		return NULL;
	memset(held, 0, sizeof(*held));
	held->header = *header;
	held->size = size;
	memcpy(held->fields, fields, size);
	held->bulk_size = bulk_size;
	if (bulk_size) {
		held->bulk = malloc(bulk_size);
		if (!held->bulk || gpd_session_recv_bulk(session, held->bulk, bulk_size)) {
			free(held->bulk);
			free(held);
			return NULL;
		}
	}
	return held;
}

static int
keep(struct gpd_session *session, const struct wish *wish, const struct gp_header *header,
     const void *fields, size_t size, struct gpd_held **held_p)
{
	struct gpd_hold *hold = session->hold;
	uint64_t bulk_size = gpd_session_bulk_size(session);
	uint64_t max = session->account.line->backlog_max;
	struct gpd_held *held;

	if (hold->cost + GP_HOLD_COST(sizeof(*header) + size, bulk_size) > max) {
		gpd_session_violation(session, "it sent more than %llu MiB behind a host function",
				      (unsigned long long)(max >> 20));
		return -EPROTO;
	}
	held = copy_record(session, header, fields, size);
	if (!held || !add_places(hold, wish, held)) {
		gpd_session_violation(session,
				      "call 0x%04x could not be kept until a host "
				      "function is done",
				      header->call);
		if (held)
			free(held->bulk);
		free(held);
		return -EPROTO;
	}
	enter(hold, wish, held);
	*held_p = held;
	return 0;
}

static bool
make_hold(struct gpd_session *session)
{
	session->hold = calloc(1, sizeof(*session->hold));
	if (session->hold)
		session->hold->ready_end = &session->hold->ready;
	return session->hold != NULL;
}

int
gpd_hold_add(struct gpd_session *session, const struct gp_header *header, const void *fields,
	     size_t size, struct gpd_held **held_p)
{
	bool is_function = header->call == GP_CALL_gpHostFunction;
	struct wish wish;
	bool waits;
	int r;

	*held_p = NULL;
	if (!session->hold && !is_function)
		return 0;
	if (!session->hold && !make_hold(session)) {
		gpd_session_violation(session, "there is no memory for its host functions");
		return -EPROTO;
	}
	/* Nothing to wait for; or what the others wait for. */
	if ((!session->hold->all && !is_function) || header->call == GP_CALL_gpHostFunctionDone)
		return 0;
	/* Its bytes are on their way, on lanes that others need. */
	if (header->call == GP_CALL_gpCopyInLanes) {
		gpd_session_violation(session, "it sent a copy on its data lanes while a host "
					       "function is not done");
		return -EPROTO;
	}
	/* The dispatcher knows what to say of it. */
	if (!make_wish(session, header, fields, size, &wish))
		return 0;
	waits = must_wait(session->hold, &wish);
	if (waits && wish.names.asks) {
		(void)gpd_session_reply(session, header->call, header->request,
					CUDA_ERROR_NOT_READY, NULL, 0);
		return 1;
	}
	if (!waits && !is_function)
		return 0;
	r = keep(session, &wish, header, fields, size, held_p);
	if (r)
		return r;
	if (!waits) {
		(*held_p)->ready = true;
		return 0;
	}
	*held_p = NULL;
	return 1;
}

struct gpd_held *
gpd_hold_next(struct gpd_session *session, struct gpd_hold_record *record)
{
	struct gpd_hold *hold = session->hold;
	struct gpd_held *held = hold ? hold->ready : NULL;

	if (!held)
		return NULL;
	hold->ready = held->ready_next;
	if (!hold->ready)
		hold->ready_end = &hold->ready;
	*record = (struct gpd_hold_record){
		.header = held->header,
		.fields = held->fields,
		.size = held->size,
		.bulk = held->bulk,
		.bulk_size = held->bulk_size,
	};
	return held;
}

/* One that closed something is gone: what comes up to the next one, itself included, may go. */
static void
consider_closed(struct gpd_hold *hold, enum needs closes)
{
	const struct gpd_held *last = hold->closers[closes];

	for (struct gpd_held *held = hold->all; held; held = held == last ? NULL : held->next)
		consider(hold, held);
}

static void
free_held(struct gpd_held *held)
{
	free(held->bulk);
	free(held);
}

void
gpd_hold_remove(struct gpd_session *session, struct gpd_held *held)
{
	struct gpd_hold *hold = session->hold;
	struct gpd_held *next[PLACES_MAX];

	DL_DELETE(hold->all, held);
	if (held->legacy)
		DL_DELETE2(hold->legacy, held, before, after);
	if (held->closes != NAMES)
		DL_DELETE2(hold->closers[held->closes], held, closes_before, closes_after);
	hold->cost -= cost_of(held);
	for (unsigned int i = 0; i < held->place_count; i++)
		next[i] = queue_pop(hold, &held->places[i]);
	for (unsigned int i = 0; i < held->place_count; i++)
		consider(hold, next[i]);
	if (held->closes != NAMES)
		consider_closed(hold, held->closes);
	consider(hold, hold->legacy);
	consider(hold, hold->all);
	free_held(held);
}

bool
gpd_hold_is_empty(const struct gpd_session *session)
{
	return !session->hold || !session->hold->all;
}

void
gpd_hold_forget(struct gpd_session *session)
{
	struct gpd_hold *hold = session->hold;
	struct gpd_held *held, *next_held;
	struct queue *queue, *next_queue;

	if (!hold)
		return;
	DL_FOREACH_SAFE(hold->all, held, next_held)
	{
		free_held(held);
	}
	HASH_ITER(hh, hold->queues, queue, next_queue)
	{
		HASH_DELETE(hh, hold->queues, queue);
		free(queue);
	}
	free(hold);
	session->hold = NULL;
}
