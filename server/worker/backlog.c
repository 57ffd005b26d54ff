/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/backlog.h"

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
	struct gpd_backlog_entry *head, *tail;
};

struct place {
	struct queue *queue;
	struct gpd_backlog_entry *next;
};

/* Which records that came before it have to be gone, besides those of the same names. */
enum needs {
	NAMES,
	LEGACY, /* those of the legacy stream and of blocking ones */
	ALL,
};

struct gpd_backlog_entry {
	struct gpd_backlog_entry *prev, *next; /* of all, in the order in which they came */
	struct gpd_backlog_entry *before,
		*after; /* of those that the legacy stream's order is for */
	struct gpd_backlog_entry *closes_before, *closes_after; /* of those that close the same */
	struct gpd_backlog_entry *ready_next;
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

struct gpd_backlog {
	struct gpd_backlog_entry *all, *legacy; /* utlist */
	struct gpd_backlog_entry *closers[ALL + 1];
	struct gpd_backlog_entry *ready, **ready_end;
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
queue_find(struct gpd_backlog *backlog, uint64_t key)
{
	struct queue *queue;

	HASH_FIND(hh, backlog->queues, &key, sizeof(key), queue);
	return queue;
}

static struct queue *
queue_make(struct gpd_backlog *backlog, uint64_t key)
{
	struct queue *queue = queue_find(backlog, key);

	if (queue)
		return queue;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return NULL;
	queue->key = key;
	HASH_ADD(hh, backlog->queues, key, sizeof(queue->key), queue);
	return queue;
}

static struct place *
place_in(struct gpd_backlog_entry *entry, const struct queue *queue)
{
	struct place *place = entry->places;

	while (place->queue != queue)
		place++;
	return place;
}

static void
queue_push(struct queue *queue, struct gpd_backlog_entry *entry)
{
	/* A call may give one name twice. */
	for (unsigned int i = 0; i < entry->place_count; i++) {
		if (entry->places[i].queue == queue)
			return;
	}
	entry->places[entry->place_count++] = (struct place){ .queue = queue };
	if (queue->tail)
		place_in(queue->tail, queue)->next = entry;
	else
		queue->head = entry;
	queue->tail = entry;
}

/* It is the first one. */
static struct gpd_backlog_entry *
queue_pop(struct gpd_backlog *backlog, struct place *place)
{
	struct queue *queue = place->queue;

	queue->head = place->next;
	if (queue->head)
		return queue->head;
	HASH_DELETE(hh, backlog->queues, queue);
	free(queue);
	return NULL;
}

static bool
is_behind(const struct gpd_backlog_entry *other, const struct gpd_backlog_entry *entry)
{
	return other && other->number < entry->number;
}

static bool
may_go(const struct gpd_backlog *backlog, const struct gpd_backlog_entry *entry)
{
	for (unsigned int i = 0; i < entry->place_count; i++) {
		if (entry->places[i].queue->head != entry)
			return false;
	}
	if (is_behind(backlog->closers[ALL], entry) ||
	    (entry->legacy && is_behind(backlog->closers[LEGACY], entry)))
		return false;
	if (entry->needs == ALL)
		return backlog->all == entry;
	return entry->needs != LEGACY || backlog->legacy == entry;
}

static void
consider(struct gpd_backlog *backlog, struct gpd_backlog_entry *entry)
{
	if (!entry || entry->ready || !may_go(backlog, entry))
		return;
	entry->ready = true;
	*backlog->ready_end = entry;
	backlog->ready_end = &entry->ready_next;
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
must_wait(struct gpd_backlog *backlog, const struct wish *wish)
{
	if (wish->names.memory && queue_find(backlog, (uint64_t)KIND_MEMORY << 32))
		return true;
	for (unsigned int i = 0; i < wish->names.count; i++) {
		if (queue_find(backlog, key_of(&wish->names.names[i])))
			return true;
	}
	if (backlog->closers[ALL] || (wish->legacy && backlog->closers[LEGACY]))
		return true;
	return (wish->needs == ALL && backlog->all) || (wish->needs == LEGACY && backlog->legacy);
}

static bool
add_places(struct gpd_backlog *backlog, const struct wish *wish, struct gpd_backlog_entry *entry)
{
	struct queue *queues[PLACES_MAX];
	unsigned int count = 0;

	for (unsigned int i = 0; i < wish->names.count; i++)
		queues[count++] = queue_make(backlog, key_of(&wish->names.names[i]));
	if (wish->names.memory)
		queues[count++] = queue_make(backlog, (uint64_t)KIND_MEMORY << 32);
	for (unsigned int i = 0; i < count; i++) {
		if (!queues[i])
			return false;
	}
	for (unsigned int i = 0; i < count; i++)
		queue_push(queues[i], entry);
	return true;
}

static uint64_t
cost_of(const struct gpd_backlog_entry *entry)
{
	return GP_BACKLOG_COST(sizeof(entry->header) + entry->size, entry->bulk_size);
}

static void
enter(struct gpd_backlog *backlog, const struct wish *wish, struct gpd_backlog_entry *entry)
{
	entry->needs = wish->needs;
	entry->closes = wish->closes;
	entry->legacy = wish->legacy;
	DL_APPEND(backlog->all, entry);
	if (entry->legacy)
		DL_APPEND2(backlog->legacy, entry, before, after);
	if (entry->closes != NAMES)
		DL_APPEND2(backlog->closers[entry->closes], entry, closes_before, closes_after);
	entry->number = ++backlog->last_number;
	backlog->cost += cost_of(entry);
}

/* A copy of the record, its bulk included. */
static struct gpd_backlog_entry *
copy_record(struct gpd_session *session, const struct gp_header *header, const void *fields,
	    size_t size)
{
	size_t bulk_size = gpd_session_bulk_size(session);
	struct gpd_backlog_entry *entry = malloc(sizeof(*entry) + size);

	if (!entry)
		return NULL;
	memset(entry, 0, sizeof(*entry));
	entry->header = *header;
	entry->size = size;
	memcpy(entry->fields, fields, size);
	entry->bulk_size = bulk_size;
	if (bulk_size) {
		entry->bulk = malloc(bulk_size);
		if (!entry->bulk || gpd_session_recv_bulk(session, entry->bulk, bulk_size)) {
			free(entry->bulk);
			free(entry);
			return NULL;
		}
	}
	return entry;
}

static int
keep(struct gpd_session *session, const struct wish *wish, const struct gp_header *header,
     const void *fields, size_t size, struct gpd_backlog_entry **entry_p)
{
	struct gpd_backlog *backlog = session->backlog;
	uint64_t bulk_size = gpd_session_bulk_size(session);
	uint64_t max = session->account.line->backlog_max;
	struct gpd_backlog_entry *entry;

	if (backlog->cost + GP_BACKLOG_COST(sizeof(*header) + size, bulk_size) > max) {
		gpd_session_violation(session, "it sent more than %llu MiB behind a host function",
				      (unsigned long long)(max >> 20));
		return -EPROTO;
	}
	entry = copy_record(session, header, fields, size);
	if (!entry || !add_places(backlog, wish, entry)) {
		gpd_session_violation(session,
				      "call 0x%04x could not be kept until a host "
				      "function is done",
				      header->call);
		if (entry)
			free(entry->bulk);
		free(entry);
		return -EPROTO;
	}
	enter(backlog, wish, entry);
	*entry_p = entry;
	return 0;
}

static bool
make_backlog(struct gpd_session *session)
{
	session->backlog = calloc(1, sizeof(*session->backlog));
	if (session->backlog)
		session->backlog->ready_end = &session->backlog->ready;
	return session->backlog != NULL;
}

int
gpd_backlog_add(struct gpd_session *session, const struct gp_header *header, const void *fields,
		size_t size, struct gpd_backlog_entry **entry_p)
{
	bool is_function = header->call == GP_CALL_gpHostFunction;
	struct wish wish;
	bool waits;
	int r;

	*entry_p = NULL;
	if (!session->backlog && !is_function)
		return 0;
	if (!session->backlog && !make_backlog(session)) {
		gpd_session_violation(session, "there is no memory for its host functions");
		return -EPROTO;
	}
	/* Nothing to wait for; or what the others wait for. */
	if ((!session->backlog->all && !is_function) || header->call == GP_CALL_gpHostFunctionDone)
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
	waits = must_wait(session->backlog, &wish);
	if (waits && wish.names.asks) {
		(void)gpd_session_reply(session, header->call, header->request,
					CUDA_ERROR_NOT_READY, NULL, 0);
		return 1;
	}
	if (!waits && !is_function)
		return 0;
	r = keep(session, &wish, header, fields, size, entry_p);
	if (r)
		return r;
	if (!waits) {
		(*entry_p)->ready = true;
		return 0;
	}
	*entry_p = NULL;
	return 1;
}

struct gpd_backlog_entry *
gpd_backlog_next(struct gpd_session *session, struct gpd_backlog_record *record)
{
	struct gpd_backlog *backlog = session->backlog;
	struct gpd_backlog_entry *entry = backlog ? backlog->ready : NULL;

	if (!entry)
		return NULL;
	backlog->ready = entry->ready_next;
	if (!backlog->ready)
		backlog->ready_end = &backlog->ready;
	*record = (struct gpd_backlog_record){
		.header = entry->header,
		.fields = entry->fields,
		.size = entry->size,
		.bulk = entry->bulk,
		.bulk_size = entry->bulk_size,
	};
	return entry;
}

/* One that closed something is gone: what comes up to the next one, itself included, may go. */
static void
consider_closed(struct gpd_backlog *backlog, enum needs closes)
{
	const struct gpd_backlog_entry *last = backlog->closers[closes];

	for (struct gpd_backlog_entry *entry = backlog->all; entry;
	     entry = entry == last ? NULL : entry->next)
		consider(backlog, entry);
}

static void
free_entry(struct gpd_backlog_entry *entry)
{
	free(entry->bulk);
	free(entry);
}

void
gpd_backlog_remove(struct gpd_session *session, struct gpd_backlog_entry *entry)
{
	struct gpd_backlog *backlog = session->backlog;
	struct gpd_backlog_entry *next[PLACES_MAX];

	DL_DELETE(backlog->all, entry);
	if (entry->legacy)
		DL_DELETE2(backlog->legacy, entry, before, after);
	if (entry->closes != NAMES)
		DL_DELETE2(backlog->closers[entry->closes], entry, closes_before, closes_after);
	backlog->cost -= cost_of(entry);
	for (unsigned int i = 0; i < entry->place_count; i++)
		next[i] = queue_pop(backlog, &entry->places[i]);
	for (unsigned int i = 0; i < entry->place_count; i++)
		consider(backlog, next[i]);
	if (entry->closes != NAMES)
		consider_closed(backlog, entry->closes);
	consider(backlog, backlog->legacy);
	consider(backlog, backlog->all);
	free_entry(entry);
}

bool
gpd_backlog_is_empty(const struct gpd_session *session)
{
	return !session->backlog || !session->backlog->all;
}

void
gpd_backlog_forget(struct gpd_session *session)
{
	struct gpd_backlog *backlog = session->backlog;
	struct gpd_backlog_entry *entry, *next_entry;
	struct queue *queue, *next_queue;

	if (!backlog)
		return;
	DL_FOREACH_SAFE(backlog->all, entry, next_entry)
	{
		free_entry(entry);
	}
	HASH_ITER(hh, backlog->queues, queue, next_queue)
	{
		HASH_DELETE(hh, backlog->queues, queue);
		free(queue);
	}
	free(backlog);
	session->backlog = NULL;
}
