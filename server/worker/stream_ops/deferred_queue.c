/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/stream_ops/deferred_queue.h"

#include "gpd_calls.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/stream.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

/* Keys of queues other than those of handles: memory calls, the order of the legacy stream, all
 * records, and records that wait for copies to the client. */
#define KEY_MEMORY ((uint64_t)GPD_KIND_COUNT << 32)
#define KEY_LEGACY ((uint64_t)(GPD_KIND_COUNT + 1) << 32)
#define KEY_ALL ((uint64_t)(GPD_KIND_COUNT + 2) << 32)
#define KEY_COPIES ((uint64_t)(GPD_KIND_COUNT + 3) << 32)
#define PLACES_MAX (GPD_CALL_HANDLES_MAX + 4)

/* Position of a record in a queue. */
struct place {
	struct place *prev, *next; /* in the order of arrival */
	struct place *prev_closer, *next_closer;
	struct gpd_deferred_entry *entry;
	struct queue *queue;
	bool needs;  /* all places before it must be gone first */
	bool closes; /* all later places wait for it */
};

/* Deferred records that depend on each other. */
struct queue {
	UT_hash_handle hh;
	uint64_t key;
	struct place *places;  /* utlist of all places */
	struct place *closers; /* list of places that close it */
};

struct gpd_deferred_entry {
	struct gpd_deferred_entry *prev, *next; /* in the list of records that may be carried out */
	struct gpd_deferred_record record;
	uint64_t number; /* in the order of arrival; 0: a gate, before all others */
	bool ready;      /* it was added to that list */
	uint32_t listed; /* number of a listed copy; 0: not listed */
	struct gpd_deferred_entry *prev_listed, *next_listed;
	unsigned int place_count;
	struct place *places; /* allocated with the entry, like the record's fields */
};

struct gpd_deferred_queue {
	struct gpd_deferred_entry *ready;
	struct queue *queues; /* hash; no queue is empty */
	struct gpd_deferred_entry *listed;
	uint64_t last_number;
	uint64_t cost;
	struct {
		uint32_t request; /* unanswered gpBacklogRoom; 0: none */
		uint64_t most;
	} room;
};

/* Dependencies of a record: its places, each in a different queue. */
struct deps {
	struct gpd_call_handles handles;
	unsigned int count;
	struct {
		uint64_t key;
		bool needs, closes;
	} places[PLACES_MAX];
};

static uint64_t
queue_key_from_handle(const struct gpd_handle *handle)
{
	/* Only the index: a new object of the same index waits for the end of the old one. */
	return (uint64_t)handle->kind << 32 | (handle->id & (GPD_HANDLE_INDEX_MAX - 1));
}

static struct queue *
queue_find(const struct gpd_deferred_queue *deferred_queue, uint64_t key)
{
	struct queue *queue;

	HASH_FIND(hh, deferred_queue->queues, &key, sizeof(key), queue);
	return queue;
}

static struct queue *
queue_find_or_create(struct gpd_deferred_queue *deferred_queue, uint64_t key)
{
	struct queue *queue = queue_find(deferred_queue, key);

	if (queue)
		return queue;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return NULL;
	queue->key = key;
	HASH_ADD(hh, deferred_queue->queues, key, sizeof(queue->key), queue);
	return queue;
}

static bool
entry_may_run(const struct gpd_deferred_entry *entry)
{
	for (unsigned int i = 0; i < entry->place_count; i++) {
		const struct place *place = &entry->places[i];
		const struct place *closer = place->queue->closers;

		if ((place->needs && place->queue->places != place) ||
		    (closer && closer->entry->number < entry->number))
			return false;
	}
	return true;
}

static void
entry_check_ready(struct gpd_deferred_queue *deferred_queue, struct gpd_deferred_entry *entry)
{
	if (entry->ready || !entry_may_run(entry))
		return;
	entry->ready = true;
	DL_APPEND(deferred_queue->ready, entry);
}

static void
deps_add(struct deps *deps, uint64_t key, bool needs, bool closes)
{
	unsigned int i = 0;

	/* A call may refer to an object twice. */
	while (i < deps->count && deps->places[i].key != key)
		i++;
	deps->count += i == deps->count;
	deps->places[i].key = key;
	deps->places[i].needs |= needs;
	deps->places[i].closes |= closes;
}

/* Adds the implicit order of the legacy stream. */
static void
deps_add_stream(const struct gpd_session *session, uint32_t id, struct deps *deps)
{
	const struct gpd_stream *stream = gpd_stream_get(session, id);
	bool waits_only = deps->handles.use == GPD_STREAM_AWAITED;
	bool legacy = stream && stream->legacy;

	/* A stream that is yet to be created may be a blocking one. */
	if (!stream || legacy || (stream->blocking && !waits_only))
		deps_add(deps, KEY_LEGACY, legacy, legacy && !waits_only);
}

/* false: the record is malformed. */
static bool
deps_from_record(const struct gpd_session *session, const struct gp_header *header,
		 const void *fields, size_t size, struct deps *deps)
{
	memset(deps, 0, sizeof(*deps));
	if (!gpd_call_get_handles(header->call, fields, size, &deps->handles))
		return false;
	deps_add(deps, KEY_ALL, deps->handles.after_all, deps->handles.before_all);
	if (deps->handles.memory)
		deps_add(deps, KEY_MEMORY, true, true);
	if (!deps->handles.no_dtoh_wait)
		deps_add(deps, KEY_COPIES, false, false);
	for (unsigned int i = 0; i < deps->handles.count; i++) {
		deps_add(deps, queue_key_from_handle(&deps->handles.handles[i]), true, true);
		if (deps->handles.handles[i].kind == GPD_KIND_STREAM &&
		    deps->handles.use != GPD_STREAM_MADE_OR_DROPPED)
			deps_add_stream(session, deps->handles.handles[i].id, deps);
	}
	return true;
}

static bool
deps_are_blocked(const struct gpd_deferred_queue *deferred_queue, const struct deps *deps)
{
	for (unsigned int i = 0; i < deps->count; i++) {
		const struct queue *queue = queue_find(deferred_queue, deps->places[i].key);

		if (queue && (deps->places[i].needs || queue->closers))
			return true;
	}
	return false;
}

static uint64_t
entry_get_cost(const struct gpd_deferred_entry *entry)
{
	const struct gpd_deferred_record *record = &entry->record;

	return GP_DEFERRED_QUEUE_COST(sizeof(record->header) + record->size, record->bulk_size);
}

/* false: out of memory. */
static bool
entry_enqueue(struct gpd_deferred_queue *deferred_queue, const struct deps *deps,
	      struct gpd_deferred_entry *entry)
{
	for (unsigned int i = 0; i < deps->count; i++) {
		entry->places[i] = (struct place){
			.entry = entry,
			.queue = queue_find_or_create(deferred_queue, deps->places[i].key),
			.needs = deps->places[i].needs,
			.closes = deps->places[i].closes,
		};
		if (!entry->places[i].queue)
			return false;
	}
	entry->place_count = deps->count;
	entry->number = ++deferred_queue->last_number;
	entry->listed = deps->handles.listed;
	if (entry->listed)
		DL_APPEND2(deferred_queue->listed, entry, prev_listed, next_listed);
	deferred_queue->cost += entry_get_cost(entry);
	for (struct place *place = entry->places; place < entry->places + deps->count; place++) {
		DL_APPEND(place->queue->places, place);
		if (place->closes)
			DL_APPEND2(place->queue->closers, place, prev_closer, next_closer);
	}
	return true;
}

static void
entry_destroy(struct gpd_deferred_entry *entry)
{
	if (entry)
		free((void *)entry->record.bulk);
	free(entry);
}

/* Copies the record, including its bulk. */
static struct gpd_deferred_entry *
entry_create(struct gpd_session *session, const struct deps *deps, const struct gp_header *header,
	     const void *fields, size_t size)
{
	size_t bulk_size = session->current.bulk_left;
	struct gpd_deferred_entry *entry =
		calloc(1, sizeof(*entry) + deps->count * sizeof(*entry->places) + size);
	void *copy, *bulk;

	if (!entry)
		return NULL;
	entry->places = (struct place *)(entry + 1);
	copy = entry->places + deps->count;
	memcpy(copy, fields, size);
	bulk = bulk_size ? malloc(bulk_size) : NULL;
	entry->record = (struct gpd_deferred_record){ *header, copy, size, bulk, bulk_size };
	if (bulk_size && (!bulk || gpd_session_recv_bulk(session, bulk, bulk_size))) {
		entry_destroy(entry);
		return NULL;
	}
	return entry;
}

static struct gp_args_gpCopyInLanes
lanes_copy_decode(const void *fields, size_t size)
{
	struct gp_args_gpCopyInLanes args;
	struct gp_dec dec;

	gp_dec_init(&dec, fields, size);
	gp_args_gpCopyInLanes_decode(&dec, &args);
	return args;
}

/* false: the session is over. */
static bool
lanes_copy_recv(struct gpd_session *session, const struct gp_args_gpCopyInLanes *args, uint8_t *to)
{
	struct gpd_arrival arrival;
	int r;

	if (gpd_lanes_expect(session, args->copy, args->size, 0))
		return false;
	while ((r = gpd_lanes_pop(session, &arrival)) > 0) {
		memcpy(to + arrival.offset, arrival.piece.memory, arrival.size);
		gpd_staging_release(session, &arrival.piece);
	}
	return r == 0;
}

/* Defers a copy on the data lanes together with its bytes, because other copies need the lanes. */
static struct gpd_deferred_entry *
entry_create_from_lanes(struct gpd_session *session, const struct deps *deps,
			const struct gp_header *header, const struct gp_args_gpCopyInLanes *args)
{
	const struct gp_args_gpCopyIn copy = {
		.stream = args->stream,
		.dst = args->dst,
		.pitch = args->size,
		.width = args->size,
		.height = 1,
		.flags = args->flags,
	};
	struct gpd_deferred_entry *entry;
	uint8_t fields[128], *bulk;
	struct gp_enc enc;

	gp_enc_init(&enc, fields, sizeof(fields));
	gp_args_gpCopyIn_encode(&enc, &copy);
	gp_enc_pad(&enc);
	session->current.bulk_left = 0;
	entry = entry_create(session, deps, header, fields, gp_enc_size(&enc));
	bulk = malloc(args->size);
	if (!entry || !bulk || !lanes_copy_recv(session, args, bulk)) {
		free(bulk);
		entry_destroy(entry);
		return NULL;
	}
	entry->record.header.call = GP_CALL_gpCopyIn;
	entry->record.header.flags |= GP_FRAME_BULK;
	entry->record.bulk = bulk;
	entry->record.bulk_size = args->size;
	return entry;
}

static int
record_defer(struct gpd_session *session, const struct deps *deps, const struct gp_header *header,
	     const void *fields, size_t size, struct gpd_deferred_entry **entry_p)
{
	struct gpd_deferred_queue *deferred_queue = session->stream_ops->queue;
	uint64_t bulk_size = session->current.bulk_left;
	uint64_t max = session->account.entry->deferred_max;
	struct gp_args_gpCopyInLanes copy;
	struct gpd_deferred_entry *entry;

	if (header->call == GP_CALL_gpCopyInLanes) {
		copy = lanes_copy_decode(fields, size);
		if (!gpd_copy_lanes_is_sound(session, &copy))
			return -EPROTO;
		bulk_size = copy.size;
	}
	if (deferred_queue->cost + GP_DEFERRED_QUEUE_COST(sizeof(*header) + size, bulk_size) >
	    max) {
		if (session->stream_ops->gates)
			return -EAGAIN;
		gpd_session_violation(session, "it sent more than %llu MiB after a host function",
				      (unsigned long long)(max >> 20));
		return -EPROTO;
	}
	entry = header->call == GP_CALL_gpCopyInLanes
			? entry_create_from_lanes(session, deps, header, &copy)
			: entry_create(session, deps, header, fields, size);
	if (!entry || !entry_enqueue(deferred_queue, deps, entry)) {
		gpd_session_violation(session,
				      "call 0x%04x could not be kept until a host "
				      "function is done",
				      header->call);
		entry_destroy(entry);
		return -EPROTO;
	}
	*entry_p = entry;
	return 0;
}

static bool
entry_enqueue_first(struct gpd_deferred_queue *deferred_queue, const struct deps *deps,
		    struct gpd_deferred_entry *gate)
{
	if (!entry_enqueue(deferred_queue, deps, gate))
		return false;
	gate->number = 0;
	for (struct place *place = gate->places; place < gate->places + deps->count; place++) {
		DL_DELETE(place->queue->places, place);
		DL_PREPEND(place->queue->places, place);
		if (!place->closes)
			continue;
		DL_DELETE2(place->queue->closers, place, prev_closer, next_closer);
		DL_PREPEND2(place->queue->closers, place, prev_closer, next_closer);
	}
	return true;
}

struct gpd_deferred_entry *
gpd_deferred_add_gate(struct gpd_session *session, enum gpd_deferred_gate_kind kind, uint32_t id)
{
	const struct gp_header header = { 0 };
	const struct gpd_handle handle = {
		.kind = kind == GPD_DEFERRED_GATE_EVENT ? GPD_KIND_EVENT : GPD_KIND_STREAM,
		.id = id,
	};
	uint64_t bulk_left = session->current.bulk_left;
	struct gpd_deferred_entry *gate;
	struct deps deps = { 0 };
	bool entered;

	if (!session->stream_ops->queue)
		session->stream_ops->queue = calloc(1, sizeof(*session->stream_ops->queue));
	if (!session->stream_ops->queue)
		return NULL;
	deps_add(&deps, KEY_ALL, false, false);
	deps_add(&deps, queue_key_from_handle(&handle), true, true);
	if (kind != GPD_DEFERRED_GATE_EVENT)
		deps_add_stream(session, id, &deps);
	if (kind == GPD_DEFERRED_GATE_COPIES)
		deps_add(&deps, KEY_COPIES, true, true);
	session->current.bulk_left = 0;
	gate = entry_create(session, &deps, &header, "", 0);
	session->current.bulk_left = bulk_left;
	if (!gate)
		return NULL;
	entered = kind == GPD_DEFERRED_GATE_EVENT
			  ? entry_enqueue(session->stream_ops->queue, &deps, gate)
			  : entry_enqueue_first(session->stream_ops->queue, &deps, gate);
	if (!entered) {
		entry_destroy(gate);
		return NULL;
	}
	gate->ready = true;
	return gate;
}

static void
event_record_reply(struct gpd_session *session, struct gpd_deferred_entry *entry)
{
	struct gpd_deferred_record *record = &entry->record;
	struct gp_args_gpEventRecord args;
	struct gp_dec dec;

	gp_dec_init(&dec, record->fields, record->size);
	gp_args_gpEventRecord_decode(&dec, &args);
	if (!record->header.request || !gpd_event_defer_record(session, args.event))
		return;
	(void)gpd_session_reply(session, record->header.call, record->header.request, CUDA_SUCCESS,
				NULL, 0);
	record->header.call = GP_CALL_cuEventRecordWithFlags;
	record->header.request = 0;
}

static struct gp_bytes
record_get_copy_bytes(const struct gpd_deferred_record *record)
{
	struct gp_args_gpCopyInShort args = { 0 };
	struct gp_dec dec;

	if (record->header.call != GP_CALL_gpCopyInShort)
		return (struct gp_bytes){ record->bulk, record->bulk_size };
	gp_dec_init(&dec, record->fields, record->size);
	gp_args_gpCopyInShort_decode(&dec, &args);
	return args.data;
}

static void
deferred_copy_replace(struct gpd_deferred_queue *deferred_queue, const void *fields, size_t size)
{
	struct gp_args_gpCopyReplace args;
	struct gpd_deferred_entry *entry;
	struct gp_dec dec;

	gp_dec_init(&dec, fields, size);
	gp_args_gpCopyReplace_decode(&dec, &args);
	DL_FOREACH2(deferred_queue->listed, entry, next_listed)
	{
		struct gp_bytes bytes = record_get_copy_bytes(&entry->record);

		if (entry->listed == args.copy && args.offset <= bytes.size &&
		    args.data.size <= bytes.size - args.offset)
			memcpy((uint8_t *)bytes.data + args.offset, args.data.data, args.data.size);
	}
}

int
gpd_deferred_add(struct gpd_session *session, const struct gp_header *header, const void *fields,
		 size_t size, struct gpd_deferred_entry **entry_p)
{
	bool is_function = gp_call_awaits_host(header->call);
	struct deps deps;
	bool waits;
	int r;

	*entry_p = NULL;
	if (!session->stream_ops->queue && !is_function)
		return 0;
	if (!session->stream_ops->queue) {
		session->stream_ops->queue = calloc(1, sizeof(*session->stream_ops->queue));
		if (!session->stream_ops->queue) {
			gpd_session_violation(
				session,
				"the daemon's machine is out of memory for its host functions");
			return -EPROTO;
		}
	}
	if (gpd_deferred_is_empty(session) && !is_function)
		return 0;
	if (!deps_from_record(session, header, fields, size, &deps))
		return 0;
	if (deps.handles.is_unordered) {
		if (header->call == GP_CALL_gpCopyReplace)
			deferred_copy_replace(session->stream_ops->queue, fields, size);
		return 0;
	}
	if (header->call == GP_CALL_gpCopyInLanes && !session->stream_ops->gates) {
		gpd_session_violation(session,
				      "it sent a copy on its data lanes while a host function is "
				      "not done, or a wait for a value is pending");
		return -EPROTO;
	}
	waits = deps_are_blocked(session->stream_ops->queue, &deps);
	if (waits && deps.handles.is_query) {
		(void)gpd_session_reply(session, header->call, header->request,
					CUDA_ERROR_NOT_READY, NULL, 0);
		return 1;
	}
	if (!waits && !is_function)
		return 0;
	r = record_defer(session, &deps, header, fields, size, entry_p);
	if (r)
		return r;
	if (!waits) {
		(*entry_p)->ready = true;
		return 0;
	}
	if (header->call == GP_CALL_gpEventRecord)
		event_record_reply(session, *entry_p);
	*entry_p = NULL;
	return 1;
}

struct gpd_deferred_entry *
gpd_deferred_pop(struct gpd_session *session, const struct gpd_deferred_record **record_p)
{
	struct gpd_deferred_queue *deferred_queue = session->stream_ops->queue;
	struct gpd_deferred_entry *entry = deferred_queue ? deferred_queue->ready : NULL;

	if (!entry)
		return NULL;
	DL_DELETE(deferred_queue->ready, entry);
	*record_p = &entry->record;
	return entry;
}

void
gpd_deferred_postpone(struct gpd_deferred_entry *entry)
{
	entry->ready = false;
}

/* Checks the records of the queue that its place has delayed. */
static void
place_release(struct gpd_deferred_queue *deferred_queue, struct place *place)
{
	struct queue *queue = place->queue;
	struct place *next;

	DL_DELETE(queue->places, place);
	if (place->closes)
		DL_DELETE2(queue->closers, place, prev_closer, next_closer);
	DL_FOREACH(queue->places, next)
	{
		entry_check_ready(deferred_queue, next->entry);
		if (!place->closes || next == queue->closers)
			break;
	}
	if (!queue->places) {
		HASH_DELETE(hh, deferred_queue->queues, queue);
		free(queue);
	}
}

CUresult
gpd_gpBacklogRoom(struct gpd_session *session, const struct gp_args_gpBacklogRoom *args,
		  struct gp_reply_gpBacklogRoom *reply)
{
	struct gpd_deferred_queue *deferred_queue = session->stream_ops->queue;

	reply->kept = deferred_queue ? deferred_queue->cost : 0;
	if (reply->kept <= args->most)
		return CUDA_SUCCESS;
	if (deferred_queue->room.request)
		return CUDA_ERROR_INVALID_VALUE;
	deferred_queue->room.request = session->current.request;
	deferred_queue->room.most = args->most;
	return GPD_LATER;
}

static void
room_reply(struct gpd_session *session)
{
	struct gpd_deferred_queue *deferred_queue = session->stream_ops->queue;
	uint64_t kept = htole64(deferred_queue->cost);

	if (!deferred_queue->room.request || deferred_queue->cost > deferred_queue->room.most)
		return;
	(void)gpd_session_reply(session, GP_CALL_gpBacklogRoom, deferred_queue->room.request,
				CUDA_SUCCESS, &kept, sizeof(kept));
	deferred_queue->room.request = 0;
}

void
gpd_deferred_remove(struct gpd_session *session, struct gpd_deferred_entry *entry)
{
	session->stream_ops->queue->cost -= entry_get_cost(entry);
	if (entry->listed)
		DL_DELETE2(session->stream_ops->queue->listed, entry, prev_listed, next_listed);
	room_reply(session);
	for (unsigned int i = 0; i < entry->place_count; i++)
		place_release(session->stream_ops->queue, &entry->places[i]);
	entry_destroy(entry);
}

bool
gpd_deferred_is_empty(const struct gpd_session *session)
{
	return !session->stream_ops->queue || !session->stream_ops->queue->queues;
}

void
gpd_deferred_destroy(struct gpd_session *session)
{
	struct gpd_deferred_queue *deferred_queue = session->stream_ops->queue;
	const struct queue *all = deferred_queue ? queue_find(deferred_queue, KEY_ALL) : NULL;
	struct queue *queue, *next_queue;
	struct place *place, *next;

	if (!deferred_queue)
		return;
	DL_FOREACH_SAFE(all ? all->places : NULL, place, next)
	{
		entry_destroy(place->entry);
	}
	HASH_ITER(hh, deferred_queue->queues, queue, next_queue)
	{
		HASH_DELETE(hh, deferred_queue->queues, queue);
		free(queue);
	}
	free(deferred_queue);
	session->stream_ops->queue = NULL;
}
