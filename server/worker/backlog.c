/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/backlog.h"

#include "gpd_calls.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane.h"
#include "server/worker/session/event.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

/* Queues besides those of names: of calls about memory, of what the legacy stream's order is for,
 * of all, and of what waits for copies to the client. */
#define KEY_MEMORY ((uint64_t)GPD_KIND_COUNT << 32)
#define KEY_LEGACY ((uint64_t)(GPD_KIND_COUNT + 1) << 32)
#define KEY_ALL ((uint64_t)(GPD_KIND_COUNT + 2) << 32)
#define KEY_COPIES ((uint64_t)(GPD_KIND_COUNT + 3) << 32)
#define PLACES_MAX (GPD_NAMES_MAX + 4)

/* A record's place in a queue. */
struct place {
	struct place *prev, *next; /* in the order in which they came */
	struct place *prev_closer, *next_closer;
	struct gpd_backlog_entry *entry;
	struct queue *queue;
	bool needs;  /* all that are before it have to be gone first */
	bool closes; /* all that come later wait for it */
};

/* Kept records that have something to do with one another. */
struct queue {
	UT_hash_handle hh;
	uint64_t key;
	struct place *places;  /* utlist of all */
	struct place *closers; /* and of those that close it */
};

struct gpd_backlog_entry {
	struct gpd_backlog_entry *prev, *next; /* in the list of those that may be carried out */
	struct gpd_backlog_record record;
	uint64_t number; /* in the order in which they came; 0: a gate, before all others */
	bool ready;      /* it was put there */
	uint32_t listed; /* the number of a listed copy; 0: it is none */
	struct gpd_backlog_entry *prev_listed, *next_listed;
	unsigned int place_count;
	struct place *places; /* with the entry, as are the record's fields */
};

struct gpd_backlog {
	struct gpd_backlog_entry *ready;
	struct queue *queues; /* hash; none is empty */
	struct gpd_backlog_entry *listed;
	uint64_t last_number;
	uint64_t cost;
	struct {
		uint32_t request; /* of a gpBacklogRoom that is not answered; 0: none */
		uint64_t most;
	} room;
};

/* What a record asks for: no two places are of one queue. */
struct wish {
	struct gpd_names names;
	unsigned int count;
	struct {
		uint64_t key;
		bool needs, closes;
	} places[PLACES_MAX];
};

static uint64_t
key_of(const struct gpd_handle *name)
{
	/* The index alone: a new object of a place waits for the end of the old one. */
	return (uint64_t)name->kind << 32 | (name->id & (GPD_HANDLE_INDEX_MAX - 1));
}

static struct queue *
queue_find(const struct gpd_backlog *backlog, uint64_t key)
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

static bool
may_go(const struct gpd_backlog_entry *entry)
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
consider(struct gpd_backlog *backlog, struct gpd_backlog_entry *entry)
{
	if (entry->ready || !may_go(entry))
		return;
	entry->ready = true;
	DL_APPEND(backlog->ready, entry);
}

static void
ask(struct wish *wish, uint64_t key, bool needs, bool closes)
{
	unsigned int i = 0;

	/* A call may give one name twice. */
	while (i < wish->count && wish->places[i].key != key)
		i++;
	wish->count += i == wish->count;
	wish->places[i].key = key;
	wish->places[i].needs |= needs;
	wish->places[i].closes |= closes;
}

/* The order that the legacy stream brings with it. */
static void
ask_for_stream(const struct gpd_session *session, uint32_t id, struct wish *wish)
{
	const struct gpd_stream *stream = gpd_stream_get(session, id);
	bool waits_only = wish->names.use == GPD_STREAM_AWAITED;
	bool legacy = stream && stream->legacy;

	/* One that is still to be made may be a blocking one. */
	if (!stream || legacy || (stream->blocking && !waits_only))
		ask(wish, KEY_LEGACY, legacy, legacy && !waits_only);
}

/* false: it is malformed. */
static bool
make_wish(const struct gpd_session *session, const struct gp_header *header, const void *fields,
	  size_t size, struct wish *wish)
{
	memset(wish, 0, sizeof(*wish));
	if (!gpd_call_names(header->call, fields, size, &wish->names))
		return false;
	ask(wish, KEY_ALL, wish->names.behind_all, wish->names.before_all);
	if (wish->names.memory)
		ask(wish, KEY_MEMORY, true, true);
	if (!wish->names.passes_copies)
		ask(wish, KEY_COPIES, false, false);
	for (unsigned int i = 0; i < wish->names.count; i++) {
		ask(wish, key_of(&wish->names.names[i]), true, true);
		if (wish->names.names[i].kind == GPD_KIND_STREAM &&
		    wish->names.use != GPD_STREAM_MADE_OR_DROPPED)
			ask_for_stream(session, wish->names.names[i].id, wish);
	}
	return true;
}

static bool
must_wait(const struct gpd_backlog *backlog, const struct wish *wish)
{
	for (unsigned int i = 0; i < wish->count; i++) {
		const struct queue *queue = queue_find(backlog, wish->places[i].key);

		if (queue && (wish->places[i].needs || queue->closers))
			return true;
	}
	return false;
}

static uint64_t
cost_of(const struct gpd_backlog_entry *entry)
{
	const struct gpd_backlog_record *record = &entry->record;

	return GP_BACKLOG_COST(sizeof(record->header) + record->size, record->bulk_size);
}

/* false: there is no memory for its queues. */
static bool
enter(struct gpd_backlog *backlog, const struct wish *wish, struct gpd_backlog_entry *entry)
{
	for (unsigned int i = 0; i < wish->count; i++) {
		entry->places[i] = (struct place){
			.entry = entry,
			.queue = queue_make(backlog, wish->places[i].key),
			.needs = wish->places[i].needs,
			.closes = wish->places[i].closes,
		};
		if (!entry->places[i].queue)
			return false;
	}
	entry->place_count = wish->count;
	entry->number = ++backlog->last_number;
	entry->listed = wish->names.listed;
	if (entry->listed)
		DL_APPEND2(backlog->listed, entry, prev_listed, next_listed);
	backlog->cost += cost_of(entry);
	for (struct place *place = entry->places; place < entry->places + wish->count; place++) {
		DL_APPEND(place->queue->places, place);
		if (place->closes)
			DL_APPEND2(place->queue->closers, place, prev_closer, next_closer);
	}
	return true;
}

static void
free_entry(struct gpd_backlog_entry *entry)
{
	if (entry)
		free((void *)entry->record.bulk);
	free(entry);
}

/* A copy of the record, its bulk included. */
static struct gpd_backlog_entry *
copy_record(struct gpd_session *session, const struct wish *wish, const struct gp_header *header,
	    const void *fields, size_t size)
{
	size_t bulk_size = session->bulk_left;
	struct gpd_backlog_entry *entry =
		calloc(1, sizeof(*entry) + wish->count * sizeof(*entry->places) + size);
	void *copy, *bulk;

	if (!entry)
		return NULL;
	entry->places = (struct place *)(entry + 1);
	copy = entry->places + wish->count;
	memcpy(copy, fields, size);
	bulk = bulk_size ? malloc(bulk_size) : NULL;
	entry->record = (struct gpd_backlog_record){ *header, copy, size, bulk, bulk_size };
	if (bulk_size && (!bulk || gpd_session_recv_bulk(session, bulk, bulk_size))) {
		free_entry(entry);
		return NULL;
	}
	return entry;
}

static struct gp_args_gpCopyInLanes
copy_of_lanes(const void *fields, size_t size)
{
	struct gp_args_gpCopyInLanes args;
	struct gp_dec dec;

	gp_dec_init(&dec, fields, size);
	gp_args_gpCopyInLanes_decode(&dec, &args);
	return args;
}

/* false: the session is over. */
static bool
take_from_lanes(struct gpd_session *session, const struct gp_args_gpCopyInLanes *args, uint8_t *to)
{
	struct gpd_arrival arrival;
	int r;

	if (gpd_lanes_expect(session, args->copy, args->size, 0))
		return false;
	while ((r = gpd_lanes_take(session, &arrival)) > 0) {
		memcpy(to + arrival.offset, arrival.piece.memory, arrival.size);
		gpd_staging_put(session, &arrival.piece);
	}
	return r == 0;
}

/* A copy whose bytes come on the data lanes, kept with its bytes: others need the lanes. */
static struct gpd_backlog_entry *
copy_lanes_record(struct gpd_session *session, const struct wish *wish,
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
	struct gpd_backlog_entry *entry;
	uint8_t fields[128], *bulk;
	struct gp_enc enc;

	gp_enc_init(&enc, fields, sizeof(fields));
	gp_args_gpCopyIn_encode(&enc, &copy);
	gp_enc_pad(&enc);
	session->bulk_left = 0;
	entry = copy_record(session, wish, header, fields, gp_enc_size(&enc));
	bulk = malloc(args->size);
	if (!entry || !bulk || !take_from_lanes(session, args, bulk)) {
		free(bulk);
		free_entry(entry);
		return NULL;
	}
	entry->record.header.call = GP_CALL_gpCopyIn;
	entry->record.header.flags |= GP_FRAME_BULK;
	entry->record.bulk = bulk;
	entry->record.bulk_size = args->size;
	return entry;
}

static int
keep(struct gpd_session *session, const struct wish *wish, const struct gp_header *header,
     const void *fields, size_t size, struct gpd_backlog_entry **entry_p)
{
	struct gpd_backlog *backlog = session->backlog;
	uint64_t bulk_size = session->bulk_left;
	uint64_t max = session->account.line->backlog_max;
	struct gp_args_gpCopyInLanes copy;
	struct gpd_backlog_entry *entry;

	if (header->call == GP_CALL_gpCopyInLanes) {
		copy = copy_of_lanes(fields, size);
		if (!gpd_copy_lanes_is_sound(session, &copy))
			return -EPROTO;
		bulk_size = copy.size;
	}
	if (backlog->cost + GP_BACKLOG_COST(sizeof(*header) + size, bulk_size) > max) {
		if (session->gates)
			return -EAGAIN;
		gpd_session_violation(session, "it sent more than %llu MiB behind a host function",
				      (unsigned long long)(max >> 20));
		return -EPROTO;
	}
	entry = header->call == GP_CALL_gpCopyInLanes
			? copy_lanes_record(session, wish, header, &copy)
			: copy_record(session, wish, header, fields, size);
	if (!entry || !enter(backlog, wish, entry)) {
		gpd_session_violation(session,
				      "call 0x%04x could not be kept until a host "
				      "function is done",
				      header->call);
		free_entry(entry);
		return -EPROTO;
	}
	*entry_p = entry;
	return 0;
}

/* Its places come before all others. */
static bool
enter_first(struct gpd_backlog *backlog, const struct wish *wish, struct gpd_backlog_entry *gate)
{
	if (!enter(backlog, wish, gate))
		return false;
	gate->number = 0;
	for (struct place *place = gate->places; place < gate->places + wish->count; place++) {
		DL_DELETE(place->queue->places, place);
		DL_PREPEND(place->queue->places, place);
		if (!place->closes)
			continue;
		DL_DELETE2(place->queue->closers, place, prev_closer, next_closer);
		DL_PREPEND2(place->queue->closers, place, prev_closer, next_closer);
	}
	return true;
}

struct gpd_backlog_entry *
gpd_backlog_add_gate(struct gpd_session *session, enum gpd_backlog_gate_kind kind, uint32_t name)
{
	const struct gp_header header = { 0 };
	const struct gpd_handle handle = {
		.kind = kind == GPD_GATE_EVENT ? GPD_KIND_EVENT : GPD_KIND_STREAM,
		.id = name,
	};
	uint64_t bulk_left = session->bulk_left;
	struct gpd_backlog_entry *gate;
	struct wish wish = { 0 };
	bool entered;

	if (!session->backlog)
		session->backlog = calloc(1, sizeof(*session->backlog));
	if (!session->backlog)
		return NULL;
	ask(&wish, KEY_ALL, false, false);
	ask(&wish, key_of(&handle), true, true);
	if (kind != GPD_GATE_EVENT)
		ask_for_stream(session, name, &wish);
	if (kind == GPD_GATE_COPIES)
		ask(&wish, KEY_COPIES, true, true);
	session->bulk_left = 0;
	gate = copy_record(session, &wish, &header, "", 0);
	session->bulk_left = bulk_left;
	if (!gate)
		return NULL;
	entered = kind == GPD_GATE_EVENT ? enter(session->backlog, &wish, gate)
					 : enter_first(session->backlog, &wish, gate);
	if (!entered) {
		free_entry(gate);
		return NULL;
	}
	gate->ready = true;
	return gate;
}

/* Other sessions know of the record from here on, so its caller need not wait for it, and it is
 * carried out as one that nobody waits for. */
static void
answer_record(struct gpd_session *session, struct gpd_backlog_entry *entry)
{
	struct gpd_backlog_record *record = &entry->record;
	struct gp_args_gpEventRecord args;
	struct gp_dec dec;

	gp_dec_init(&dec, record->fields, record->size);
	gp_args_gpEventRecord_decode(&dec, &args);
	if (!record->header.request || !gpd_event_hold(session, args.event))
		return;
	(void)gpd_session_reply(session, record->header.call, record->header.request, CUDA_SUCCESS,
				NULL, 0);
	/* It has the same fields. */
	record->header.call = GP_CALL_cuEventRecordWithFlags;
	record->header.request = 0;
}

/* The bytes of a kept copy to the device, which are packed. */
static struct gp_bytes
copied_bytes(const struct gpd_backlog_record *record)
{
	struct gp_args_gpCopyInShort args = { 0 };
	struct gp_dec dec;

	if (record->header.call != GP_CALL_gpCopyInShort)
		return (struct gp_bytes){ record->bulk, record->bulk_size };
	gp_dec_init(&dec, record->fields, record->size);
	gp_args_gpCopyInShort_decode(&dec, &args);
	return args.data;
}

/* What is not kept is replaced where it is staged (copy/listed.h). */
static void
replace_kept(struct gpd_backlog *backlog, const void *fields, size_t size)
{
	struct gp_args_gpCopyReplace args;
	struct gpd_backlog_entry *entry;
	struct gp_dec dec;

	gp_dec_init(&dec, fields, size);
	gp_args_gpCopyReplace_decode(&dec, &args);
	DL_FOREACH2(backlog->listed, entry, next_listed)
	{
		struct gp_bytes bytes = copied_bytes(&entry->record);

		if (entry->listed == args.copy && args.offset <= bytes.size &&
		    args.data.size <= bytes.size - args.offset)
			memcpy((uint8_t *)bytes.data + args.offset, args.data.data, args.data.size);
	}
}

int
gpd_backlog_add(struct gpd_session *session, const struct gp_header *header, const void *fields,
		size_t size, struct gpd_backlog_entry **entry_p)
{
	bool is_function = gp_call_awaits_host(header->call);
	struct wish wish;
	bool waits;
	int r;

	*entry_p = NULL;
	if (!session->backlog && !is_function)
		return 0;
	if (!session->backlog) {
		session->backlog = calloc(1, sizeof(*session->backlog));
		if (!session->backlog) {
			gpd_session_violation(
				session,
				"the daemon's machine is out of memory for its host functions");
			return -EPROTO;
		}
	}
	/* Nothing to wait for. */
	if (gpd_backlog_is_empty(session) && !is_function)
		return 0;
	/* The dispatcher knows what to say of it. */
	if (!make_wish(session, header, fields, size, &wish))
		return 0;
	/* The others wait for it: an effect of the host, or a late copy, whose host function later
	 * records of its stream wait for. */
	if (wish.names.passes_all) {
		if (header->call == GP_CALL_gpCopyReplace)
			replace_kept(session->backlog, fields, size);
		return 0;
	}
	/* Its bytes are on their way, on lanes that others need.  Of gates the client knows
	 * nothing. */
	if (header->call == GP_CALL_gpCopyInLanes && !session->gates) {
		gpd_session_violation(session,
				      "it sent a copy on its data lanes while a host function is "
				      "not done, or a wait for a word is not over");
		return -EPROTO;
	}
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
	if (header->call == GP_CALL_gpEventRecord)
		answer_record(session, *entry_p);
	*entry_p = NULL;
	return 1;
}

struct gpd_backlog_entry *
gpd_backlog_next(struct gpd_session *session, const struct gpd_backlog_record **record_p)
{
	struct gpd_backlog *backlog = session->backlog;
	struct gpd_backlog_entry *entry = backlog ? backlog->ready : NULL;

	if (!entry)
		return NULL;
	DL_DELETE(backlog->ready, entry);
	*record_p = &entry->record;
	return entry;
}

void
gpd_backlog_defer(struct gpd_backlog_entry *entry)
{
	entry->ready = false;
}

/* Those of the queue that its place kept waiting may go now. */
static void
leave(struct gpd_backlog *backlog, struct place *place)
{
	struct queue *queue = place->queue;
	struct place *next;

	DL_DELETE(queue->places, place);
	if (place->closes)
		DL_DELETE2(queue->closers, place, prev_closer, next_closer);
	DL_FOREACH(queue->places, next)
	{
		consider(backlog, next->entry);
		if (!place->closes || next == queue->closers)
			break;
	}
	if (!queue->places) {
		HASH_DELETE(hh, backlog->queues, queue);
		free(queue);
	}
}

CUresult
gpd_gpBacklogRoom(struct gpd_session *session, const struct gp_args_gpBacklogRoom *args,
		  struct gp_reply_gpBacklogRoom *reply)
{
	struct gpd_backlog *backlog = session->backlog;

	reply->kept = backlog ? backlog->cost : 0;
	if (reply->kept <= args->most)
		return CUDA_SUCCESS;
	if (backlog->room.request)
		return CUDA_ERROR_INVALID_VALUE;
	backlog->room.request = session->request;
	backlog->room.most = args->most;
	return GPD_LATER;
}

static void
answer_room(struct gpd_session *session)
{
	struct gpd_backlog *backlog = session->backlog;
	uint64_t kept = htole64(backlog->cost);

	if (!backlog->room.request || backlog->cost > backlog->room.most)
		return;
	(void)gpd_session_reply(session, GP_CALL_gpBacklogRoom, backlog->room.request, CUDA_SUCCESS,
				&kept, sizeof(kept));
	backlog->room.request = 0;
}

void
gpd_backlog_remove(struct gpd_session *session, struct gpd_backlog_entry *entry)
{
	session->backlog->cost -= cost_of(entry);
	if (entry->listed)
		DL_DELETE2(session->backlog->listed, entry, prev_listed, next_listed);
	answer_room(session);
	for (unsigned int i = 0; i < entry->place_count; i++)
		leave(session->backlog, &entry->places[i]);
	free_entry(entry);
}

bool
gpd_backlog_is_empty(const struct gpd_session *session)
{
	return !session->backlog || !session->backlog->queues;
}

void
gpd_backlog_forget(struct gpd_session *session)
{
	struct gpd_backlog *backlog = session->backlog;
	const struct queue *all = backlog ? queue_find(backlog, KEY_ALL) : NULL;
	struct queue *queue, *next_queue;
	struct place *place, *next;

	if (!backlog)
		return;
	DL_FOREACH_SAFE(all ? all->places : NULL, place, next)
	{
		free_entry(place->entry);
	}
	HASH_ITER(hh, backlog->queues, queue, next_queue)
	{
		HASH_DELETE(hh, backlog->queues, queue);
		free(queue);
	}
	free(backlog);
	session->backlog = NULL;
}
