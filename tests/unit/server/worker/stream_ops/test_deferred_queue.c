/* SPDX-License-Identifier: Apache-2.0 */
/* Which records wait for a host function, and for one another. */
#include "gpd_calls.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream_ops/deferred_queue.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <stdlib.h>
#include <string.h>

#define LEGACY 1u
#define A 2u /* blocking ones */
#define B 3u
#define FREE FAKE_STREAM /* and those that are not */
#define LOOSE 7u
#define RECORDS 400

/* A record as the test sees it. */
struct seen {
	uint16_t call;
	uint32_t stream, event;
	bool barrier, due, memory, query;
	unsigned int begun, ended; /* when, as steps; 0: not yet */
	bool answered;             /* with CUDA_ERROR_NOT_READY */
	struct gpd_deferred_entry *entry;
};

static struct fake_session fake;
static struct gpd_stream legacy, a, b, loose;
static struct seen seen[RECORDS];
static unsigned int seen_count, step;
static uint8_t bulk[4096];

/* Only the calls that the records below name; the generated dispatcher would need all hooks. */
bool
gpd_call_get_handles(uint16_t call, const void *fields, size_t size,
		     struct gpd_call_handles *handles)
{
	struct gp_args_cuStreamWaitEvent wait;
	struct gp_args_cuEventRecordWithFlags record;
	struct gp_args_gpCopyInShort text;
	struct gp_args_gpCopyIn copy;
	struct gp_dec dec;

	*handles = (struct gpd_call_handles){
		.after_all = call == GP_CALL_gpMemoryUnmap || call == GP_CALL_gpFence,
		.is_unordered = gp_call_is_unordered(call),
		.is_query = call == GP_CALL_cuStreamQuery || call == GP_CALL_cuEventQuery,
		.no_dtoh_wait = call != GP_CALL_cuStreamDestroy_v2,
	};
	if (call == GP_CALL_cuStreamQuery || call == GP_CALL_cuStreamSynchronize)
		handles->use = GPD_STREAM_AWAITED;
	if (call == GP_CALL_cuStreamCreateWithPriority || call == GP_CALL_cuStreamDestroy_v2)
		handles->use = GPD_STREAM_MADE_OR_DROPPED;
	gp_dec_init(&dec, fields, size);
	switch (call) {
	case GP_CALL_cuStreamWaitEvent:
		gp_args_cuStreamWaitEvent_decode(&dec, &wait);
		handles->handles[handles->count++] =
			(struct gpd_handle){ GPD_KIND_STREAM, wait.hStream };
		handles->handles[handles->count++] =
			(struct gpd_handle){ GPD_KIND_EVENT, wait.hEvent };
		break;
	case GP_CALL_gpEventRecord:
	case GP_CALL_cuEventRecordWithFlags:
		gp_args_cuEventRecordWithFlags_decode(&dec, &record);
		handles->handles[handles->count++] =
			(struct gpd_handle){ GPD_KIND_EVENT, record.hEvent };
		handles->handles[handles->count++] =
			(struct gpd_handle){ GPD_KIND_STREAM, record.hStream };
		break;
	case GP_CALL_gpCopyIn:
		gp_args_gpCopyIn_decode(&dec, &copy);
		handles->before_all = copy.flags & GP_COPY_BARRIER;
		handles->is_unordered = copy.flags & GP_COPY_LATE;
		handles->listed =
			copy.flags & GP_COPY_LISTED ? copy.flags >> GP_COPY_NUMBER_SHIFT : 0;
		handles->handles[handles->count++] =
			(struct gpd_handle){ GPD_KIND_STREAM, copy.stream };
		break;
	case GP_CALL_gpCopyInShort:
		gp_args_gpCopyInShort_decode(&dec, &text);
		handles->listed = text.flags >> GP_COPY_NUMBER_SHIFT;
		handles->handles[handles->count++] =
			(struct gpd_handle){ GPD_KIND_STREAM, text.stream };
		break;
	case GP_CALL_gpHostFunction:
	case GP_CALL_cuStreamQuery:
	case GP_CALL_cuStreamSynchronize:
	case GP_CALL_cuStreamCreateWithPriority:
	case GP_CALL_cuStreamDestroy_v2:
		handles->handles[handles->count++] =
			(struct gpd_handle){ GPD_KIND_STREAM, gp_dec_u32(&dec) };
		break;
	case GP_CALL_cuEventQuery:
		handles->handles[handles->count++] =
			(struct gpd_handle){ GPD_KIND_EVENT, gp_dec_u32(&dec) };
		break;
	case GP_CALL_gpMemoryMap:
	case GP_CALL_gpMemoryUnmap:
		handles->memory = true;
		break;
	default:
		break;
	}
	return gp_dec_ok(&dec);
}

static unsigned int events_held;

bool
gpd_event_defer_record(struct gpd_session *session, uint32_t id)
{
	events_held += id == 9;
	return id == 9;
}

static size_t
encode(const struct seen *record, void *memory, size_t room)
{
	struct gp_args_cuStreamWaitEvent wait = { record->stream, record->event, 0 };
	struct gp_args_cuEventRecordWithFlags mark = { record->event, record->stream, 0 };
	struct gp_args_gpCopyIn copy = {
		.stream = record->stream,
		.flags = (record->barrier ? GP_COPY_BARRIER : 0) | (record->due ? GP_COPY_LATE : 0),
	};
	struct gp_enc enc;

	gp_enc_init(&enc, memory, room);
	if (record->call == GP_CALL_cuStreamWaitEvent)
		gp_args_cuStreamWaitEvent_encode(&enc, &wait);
	else if (record->call == GP_CALL_cuEventRecordWithFlags ||
		 record->call == GP_CALL_gpEventRecord)
		gp_args_cuEventRecordWithFlags_encode(&enc, &mark);
	else if (record->call == GP_CALL_gpCopyIn)
		gp_args_gpCopyIn_encode(&enc, &copy);
	else
		gp_enc_u32(&enc, record->stream ? record->stream : record->event);
	gp_enc_pad(&enc);
	return gp_enc_size(&enc);
}

static void
carry_out(struct seen *record, struct gpd_deferred_entry *entry)
{
	assert_int_equal(record->begun, 0);
	record->begun = ++step;
	if (record->call == GP_CALL_gpHostFunction) {
		record->entry = entry;
		return;
	}
	record->ended = record->begun;
	if (entry)
		gpd_deferred_remove(&fake.session, entry);
}

static void
carry_out_kept(void)
{
	const struct gpd_deferred_record *record;
	struct gpd_deferred_entry *entry;

	while ((entry = gpd_deferred_pop(&fake.session, &record)))
		carry_out(&seen[record->header.context], entry);
}

/* Sends it; its number is where the context is, which nobody here looks at. */
static struct seen *
send_record(struct seen record)
{
	struct gp_header header = { .call = record.call, .context = seen_count };
	struct gpd_deferred_entry *entry;
	uint8_t fields[128];
	size_t size;

	assert_true(seen_count < RECORDS);
	seen[seen_count] = record;
	size = encode(&record, fields, sizeof(fields));
	header.request = record.query;
	fake.reply_count = 0;
	switch (gpd_deferred_add(&fake.session, &header, fields, size, &entry)) {
	case 0:
		carry_out(&seen[seen_count], entry);
		break;
	case 1:
		assert_null(entry);
		seen[seen_count].answered = fake.reply_count == 1;
		break;
	default:
		fail();
	}
	carry_out_kept();
	return &seen[seen_count++];
}

static struct seen *
work(uint32_t stream)
{
	return send_record((struct seen){ .call = GP_CALL_gpCopyIn, .stream = stream });
}

static struct seen *
function(uint32_t stream)
{
	return send_record((struct seen){ .call = GP_CALL_gpHostFunction, .stream = stream });
}

static void
finish(struct seen *record)
{
	assert_int_not_equal(record->begun, 0);
	record->ended = ++step;
	gpd_deferred_remove(&fake.session, record->entry);
	carry_out_kept();
}

static struct seen *
call(uint16_t number)
{
	return send_record((struct seen){ .call = number });
}

static bool
query(uint32_t stream)
{
	struct seen *record = send_record(
		(struct seen){ .call = GP_CALL_cuStreamQuery, .stream = stream, .query = true });

	return !record->answered;
}

static int
setup(void **state)
{
	struct gpd_stream *streams[] = { &legacy, &a, &b, &loose };
	static const uint32_t names[] = { LEGACY, A, B, LOOSE };

	fake_session_create(&fake);
	memset(seen, 0, sizeof(seen));
	seen_count = step = 0;
	for (int i = 0; i < 4; i++) {
		memset(streams[i], 0, sizeof(*streams[i]));
		if (gpd_handle_add(&fake.session.handles, GPD_KIND_STREAM, names[i],
				   &streams[i]->handle))
			return -1;
	}
	legacy.legacy = true;
	a.blocking = b.blocking = true;
	return 0;
}

static int
teardown(void **state)
{
	gpd_deferred_destroy(&fake.session);
	fake_session_destroy(&fake);
	return 0;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(without_functions_nothing_is_kept)
{
	assert_true(work(A)->ended);
	assert_true(work(LEGACY)->ended);
	assert_true(call(GP_CALL_gpFence)->ended);
	assert_null(fake.session.stream_ops->queue);
	finish(function(A));
	assert_true(work(A)->ended);
}

TEST(a_stream_goes_on_when_its_function_is_done)
{
	struct seen *first = function(FREE), *behind = work(FREE), *second = function(FREE);
	struct seen *last = work(FREE);

	assert_true(work(LOOSE)->ended);
	assert_true(work(A)->ended);
	assert_true(work(LEGACY)->ended);
	assert_false(behind->begun);
	assert_false(query(FREE));
	assert_true(query(LOOSE));
	finish(first);
	assert_true(behind->ended);
	assert_true(second->begun);
	assert_false(last->begun);
	finish(second);
	assert_true(last->ended);
	assert_true(query(FREE));
}

TEST(a_late_copy_goes_ahead_of_what_waits_for_its_function)
{
	struct seen *gate = function(FREE), *behind = work(FREE), *due;

	due = send_record((struct seen){ .call = GP_CALL_gpCopyIn, .stream = FREE, .due = true });
	assert_true(due->ended);
	assert_false(behind->begun);
	finish(gate);
	assert_true(behind->ended > due->ended);
}

static struct gpd_deferred_entry *
gate_add(enum gpd_deferred_gate_kind kind, uint32_t name)
{
	struct gpd_deferred_entry *gate = gpd_deferred_add_gate(&fake.session, kind, name);

	assert_non_null(gate);
	return gate;
}

static void
gate_open(struct gpd_deferred_entry *gate)
{
	gpd_deferred_remove(&fake.session, gate);
	carry_out_kept();
}

TEST(records_of_a_stream_wait_for_all_its_gates)
{
	struct gpd_deferred_entry *full, *copied;
	struct seen *gate = function(FREE), *kept = work(FREE), *later;

	full = gate_add(GPD_DEFERRED_GATE_DEPTH, FREE);
	copied = gate_add(GPD_DEFERRED_GATE_COPIES, FREE);
	later = work(FREE);
	assert_true(work(LOOSE)->ended);
	finish(gate);
	assert_false(kept->begun);
	gate_open(full);
	assert_false(kept->begun);
	gate_open(copied);
	assert_true(kept->ended && later->ended > kept->ended);
}

TEST(calls_that_do_not_pass_copies_wait_for_their_gates)
{
	struct gpd_deferred_entry *first = gate_add(GPD_DEFERRED_GATE_COPIES, FREE);
	struct gpd_deferred_entry *second = gate_add(GPD_DEFERRED_GATE_COPIES, LOOSE);
	struct seen *drop =
		send_record((struct seen){ .call = GP_CALL_cuStreamDestroy_v2, .stream = A });

	assert_true(work(A)->begun == 0);
	assert_true(work(B)->ended);
	gate_open(second);
	assert_false(drop->begun);
	gate_open(first);
	assert_true(drop->ended);
}

TEST(an_event_s_gate_leaves_what_came_before_it)
{
	struct seen *gate = function(FREE), *mark, *wait;
	struct gpd_deferred_entry *held;

	mark = send_record((struct seen){
		.call = GP_CALL_cuEventRecordWithFlags, .stream = FREE, .event = 9 });
	held = gate_add(GPD_DEFERRED_GATE_EVENT, 9);
	wait = send_record(
		(struct seen){ .call = GP_CALL_cuStreamWaitEvent, .stream = LOOSE, .event = 9 });
	finish(gate);
	assert_true(mark->ended);
	assert_false(wait->begun);
	gate_open(held);
	assert_true(wait->ended);
}

TEST(a_record_of_a_shared_event_is_answered_when_it_is_kept)
{
	struct seen *gate, *mark;

	events_held = 0;
	gate = function(FREE);
	mark = send_record((struct seen){
		.call = GP_CALL_gpEventRecord, .stream = FREE, .event = 9, .query = true });
	assert_true(mark->answered);
	assert_int_equal(fake.replies[0].result, CUDA_SUCCESS);
	assert_int_equal(events_held, 1);
	assert_false(mark->begun);
	/* Of another event nothing is known. */
	mark = send_record((struct seen){
		.call = GP_CALL_gpEventRecord, .stream = FREE, .event = 8, .query = true });
	assert_false(mark->answered);
	assert_int_equal(events_held, 1);
	finish(gate);
	assert_true(mark->ended);
}

TEST(room_is_reported_when_little_enough_is_kept)
{
	const struct gp_args_gpBacklogRoom none = { 0 }, much = { GP_DEFERRED_QUEUE_MAX };
	struct gp_reply_gpBacklogRoom reply = { 1 };
	struct seen *gate;

	fake.session.current.request = 5;
	assert_int_equal(gpd_gpBacklogRoom(&fake.session, &none, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.kept, 0);
	gate = function(FREE);
	(void)work(FREE);
	assert_int_equal(gpd_gpBacklogRoom(&fake.session, &much, &reply), CUDA_SUCCESS);
	assert_true(reply.kept >= 2 * GP_DEFERRED_RECORD_COST);
	assert_int_equal(gpd_gpBacklogRoom(&fake.session, &none, &reply), GPD_LATER);
	/* One at a time. */
	assert_int_equal(gpd_gpBacklogRoom(&fake.session, &none, &reply), CUDA_ERROR_INVALID_VALUE);
	fake.reply_count = 0;
	finish(gate);
	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.replies[0].call, GP_CALL_gpBacklogRoom);
	assert_int_equal(fake.replies[0].request, 5);
	assert_int_equal(gpd_gpBacklogRoom(&fake.session, &none, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.kept, 0);
}

TEST(an_event_takes_the_wait_to_other_streams)
{
	struct seen *gate = function(FREE), *mark, *wait, *behind, *asked;

	mark = send_record((struct seen){
		.call = GP_CALL_cuEventRecordWithFlags, .stream = FREE, .event = 9 });
	wait = send_record(
		(struct seen){ .call = GP_CALL_cuStreamWaitEvent, .stream = LOOSE, .event = 9 });
	behind = work(LOOSE);
	asked = send_record(
		(struct seen){ .call = GP_CALL_cuEventQuery, .event = 9, .query = true });
	assert_true(asked->answered);
	assert_false(mark->begun || wait->begun || behind->begun);
	finish(gate);
	assert_true(mark->ended < wait->begun && wait->ended < behind->begun);
}

TEST(legacy_work_waits_for_the_functions_of_blocking_streams)
{
	struct seen *gate = function(A), *in_legacy = work(LEGACY), *in_other = work(B);

	assert_false(in_legacy->begun);
	assert_false(in_other->begun);
	assert_false(query(LEGACY));
	/* It has been given nothing that is not done. */
	assert_true(work(LOOSE)->ended);
	finish(gate);
	assert_true(in_legacy->ended && in_other->begun > in_legacy->ended);
	assert_true(query(LEGACY));
}

TEST(blocking_streams_wait_for_the_legacy_streams_functions)
{
	struct seen *gate = function(LEGACY), *in_a = function(A), *in_b = work(B);

	assert_false(in_a->begun);
	assert_false(in_b->begun);
	assert_true(work(FREE)->ended);
	finish(gate);
	assert_true(in_a->begun);
	/* And not for each other's. */
	assert_true(in_b->ended);
	assert_true(work(B)->ended);
	finish(in_a);
}

TEST(what_concerns_all_streams_waits_for_all)
{
	struct seen *first = function(FREE), *second = function(A), *kept = work(FREE);
	struct seen *fence = call(GP_CALL_gpFence), *unmap = call(GP_CALL_gpMemoryUnmap);
	struct seen *map = call(GP_CALL_gpMemoryMap);

	assert_true(work(LOOSE)->ended);
	finish(first);
	assert_true(kept->ended);
	assert_false(fence->begun || unmap->begun || map->begun);
	finish(second);
	assert_true(fence->ended < unmap->ended && unmap->ended < map->ended);
	assert_true(call(GP_CALL_gpMemoryMap)->ended);
}

TEST(all_waits_for_a_copy_that_all_wait_for)
{
	struct seen *gate = function(FREE), *copy, *behind;

	copy = send_record(
		(struct seen){ .call = GP_CALL_gpCopyIn, .stream = FREE, .barrier = true });
	behind = work(LOOSE);
	assert_false(copy->begun || behind->begun);
	finish(gate);
	assert_true(copy->ended && behind->begun > copy->ended);
}

TEST(a_stream_made_in_the_place_of_a_dropped_one_waits_for_its_end)
{
	struct seen *gate = function(FREE), *drop, *make, *behind;
	uint32_t again = FREE | 1u << 20;

	drop = send_record((struct seen){ .call = GP_CALL_cuStreamDestroy_v2, .stream = FREE });
	make = send_record(
		(struct seen){ .call = GP_CALL_cuStreamCreateWithPriority, .stream = again });
	behind = work(again);
	assert_true(send_record((struct seen){ .call = GP_CALL_cuStreamCreateWithPriority,
					       .stream = 99 })
			    ->ended);
	assert_false(drop->begun || make->begun || behind->begun);
	finish(gate);
	assert_true(drop->ended < make->ended && make->ended < behind->ended);
}

TEST(a_kept_record_has_its_bulk)
{
	struct gp_header header = { .call = GP_CALL_gpCopyIn };
	struct seen copy = { .call = GP_CALL_gpCopyIn, .stream = FREE };
	const struct gpd_deferred_record *record;
	struct gpd_deferred_entry *entry;
	uint8_t fields[128];
	size_t size = encode(&copy, fields, sizeof(fields));
	struct seen *gate = function(FREE);

	for (size_t i = 0; i < sizeof(bulk); i++)
		bulk[i] = (uint8_t)(i * 7);
	fake.bulk = bulk;
	fake.session.current.bulk_left = sizeof(bulk);
	assert_int_equal(gpd_deferred_add(&fake.session, &header, fields, size, &entry), 1);
	assert_int_equal(fake.session.current.bulk_left, 0);
	gate->ended = ++step;
	gpd_deferred_remove(&fake.session, gate->entry);
	entry = gpd_deferred_pop(&fake.session, &record);
	assert_non_null(entry);
	assert_int_equal(record->size, size);
	assert_memory_equal(record->fields, fields, size);
	assert_int_equal(record->bulk_size, sizeof(bulk));
	assert_memory_equal(record->bulk, bulk, sizeof(bulk));
	gpd_deferred_remove(&fake.session, entry);
	assert_null(gpd_deferred_pop(&fake.session, &record));
}

static int
replace(uint32_t number, uint64_t offset, const void *bytes, size_t size)
{
	const struct gp_header header = { .call = GP_CALL_gpCopyReplace };
	const struct gp_args_gpCopyReplace args = { number, offset, { bytes, size } };
	struct gpd_deferred_entry *entry;
	uint8_t fields[128];
	struct gp_enc enc;

	gp_enc_init(&enc, fields, sizeof(fields));
	gp_args_gpCopyReplace_encode(&enc, &args);
	gp_enc_pad(&enc);
	return gpd_deferred_add(&fake.session, &header, fields, gp_enc_size(&enc), &entry);
}

TEST(kept_bytes_of_a_listed_copy_are_replaced)
{
	const struct gp_args_gpCopyIn copy = {
		.stream = FREE,
		.flags = GP_COPY_LISTED | 7u << GP_COPY_NUMBER_SHIFT,
	};
	struct gp_header header = { .call = GP_CALL_gpCopyIn };
	struct seen *gate = function(FREE);
	const struct gpd_deferred_record *record;
	struct gpd_deferred_entry *entry;
	uint8_t fields[128], expected[sizeof(bulk)] = { 0 };
	struct gp_enc enc;

	gp_enc_init(&enc, fields, sizeof(fields));
	gp_args_gpCopyIn_encode(&enc, &copy);
	gp_enc_pad(&enc);
	memset(bulk, 0, sizeof(bulk));
	fake.bulk = bulk;
	fake.session.current.bulk_left = sizeof(bulk);
	assert_int_equal(
		gpd_deferred_add(&fake.session, &header, fields, gp_enc_size(&enc), &entry), 1);
	/* The hook of each is to be called, too. */
	assert_int_equal(replace(7, 2, "abc", 3), 0);
	assert_int_equal(replace(7, sizeof(bulk) - 1, "z", 1), 0);
	/* Of another copy, and beyond its end. */
	assert_int_equal(replace(8, 2, "xyz", 3), 0);
	assert_int_equal(replace(7, sizeof(bulk) - 1, "xyz", 3), 0);
	assert_int_equal(replace(7, UINT64_MAX, "xyz", 3), 0);
	memcpy(expected + 2, "abc", 3);
	expected[sizeof(bulk) - 1] = 'z';
	gate->ended = ++step;
	gpd_deferred_remove(&fake.session, gate->entry);
	entry = gpd_deferred_pop(&fake.session, &record);
	assert_non_null(entry);
	assert_memory_equal(record->bulk, expected, sizeof(expected));
	gpd_deferred_remove(&fake.session, entry);
	/* It is not deferred any more. */
	gate = function(FREE);
	(void)work(FREE);
	assert_int_equal(replace(7, 2, "xyz", 3), 0);
	finish(gate);
}

TEST(bytes_of_a_short_listed_copy_are_replaced)
{
	struct gp_args_gpCopyInShort copy = {
		.stream = FREE,
		.flags = GP_COPY_LISTED | 7u << GP_COPY_NUMBER_SHIFT,
		.data = { "0123456789", 10 },
	};
	struct gp_header header = { .call = GP_CALL_gpCopyInShort };
	struct seen *gate = function(FREE);
	const struct gpd_deferred_record *record;
	struct gpd_deferred_entry *entry;
	uint8_t fields[128];
	struct gp_enc enc;
	struct gp_dec dec;

	gp_enc_init(&enc, fields, sizeof(fields));
	gp_args_gpCopyInShort_encode(&enc, &copy);
	gp_enc_pad(&enc);
	assert_int_equal(
		gpd_deferred_add(&fake.session, &header, fields, gp_enc_size(&enc), &entry), 1);
	assert_int_equal(replace(7, 4, "abc", 3), 0);
	assert_int_equal(replace(7, 8, "xyz", 3), 0);
	gate->ended = ++step;
	gpd_deferred_remove(&fake.session, gate->entry);
	entry = gpd_deferred_pop(&fake.session, &record);
	assert_non_null(entry);
	gp_dec_init(&dec, record->fields, record->size);
	gp_args_gpCopyInShort_decode(&dec, &copy);
	assert_int_equal(copy.data.size, 10);
	assert_memory_equal(copy.data.data, "0123abc789", 10);
	gpd_deferred_remove(&fake.session, entry);
}

TEST(who_sends_too_much_is_shown_out)
{
	struct gp_header header = { .call = GP_CALL_gpCopyIn };
	struct seen copy = { .call = GP_CALL_gpCopyIn, .stream = FREE };
	uint8_t fields[128];
	size_t size = encode(&copy, fields, sizeof(fields));
	struct gpd_deferred_entry *entry;

	(void)function(FREE);
	fake.session.current.bulk_left = GP_DEFERRED_QUEUE_MAX;
	assert_true(gpd_deferred_add(&fake.session, &header, fields, size, &entry) < 0);
	assert_string_equal(fake.violation, "it sent more than 64 MiB after a host function");
}

/* Whether the later one must not begin before the earlier one has ended. */
static bool
comes_before(const struct seen *first, const struct seen *then)
{
	bool all = then->call == GP_CALL_gpFence || then->call == GP_CALL_gpMemoryUnmap;
	/* A wait in a stream is not work there. */
	bool waits_first = first->call == GP_CALL_cuStreamSynchronize;
	bool waits_then = then->call == GP_CALL_cuStreamSynchronize;
	bool together = first->stream && first->stream <= B && !waits_first && then->stream &&
			then->stream <= B &&
			(then->stream == LEGACY || (first->stream == LEGACY && !waits_then));

	return all || first->barrier || together ||
	       (first->stream && first->stream == then->stream) ||
	       (first->event && first->event == then->event) || (first->memory && then->memory);
}

static struct seen
random_record(void)
{
	static const uint32_t streams[] = { LEGACY, A, A, B, B, FREE, FREE, LOOSE, LOOSE };
	struct seen record = { .stream = streams[rand() % 9] };

	switch (rand() % 16) {
	case 0:
		return (struct seen){ .call = GP_CALL_gpFence };
	case 1:
		return (struct seen){ .call = GP_CALL_gpMemoryUnmap, .memory = true };
	case 2:
		return (struct seen){ .call = GP_CALL_gpMemoryMap, .memory = true };
	case 3:
		record.call = GP_CALL_gpCopyIn;
		record.barrier = rand() % 4 == 0;
		return record;
	case 4:
	case 5:
		record.call = GP_CALL_cuStreamWaitEvent;
		record.event = 8 + (uint32_t)rand() % 3;
		return record;
	case 6:
	case 7:
		record.call = GP_CALL_cuEventRecordWithFlags;
		record.event = 8 + (uint32_t)rand() % 3;
		return record;
	case 8:
		record.call = GP_CALL_cuStreamSynchronize;
		return record;
	case 9:
	case 10:
	case 11:
		record.call = GP_CALL_gpHostFunction;
		return record;
	default:
		record.call = GP_CALL_gpCopyIn;
		return record;
	}
}

/* Each record that has not started comes after one that has not ended. */
static void
check_that_nothing_waits_in_vain(void)
{
	for (unsigned int i = 0; i < seen_count; i++) {
		bool waits = seen[i].begun == 0;

		for (unsigned int k = 0; k < i && waits; k++)
			waits = seen[k].ended || !comes_before(&seen[k], &seen[i]);
		assert_false(waits);
	}
}

static void
finish_one(void)
{
	unsigned int first = (unsigned int)rand() % seen_count;

	for (unsigned int i = 0; i < seen_count; i++) {
		struct seen *record = &seen[(first + i) % seen_count];

		if (record->call == GP_CALL_gpHostFunction && record->begun && !record->ended) {
			finish(record);
			return;
		}
	}
}

static bool
all_ended(void)
{
	for (unsigned int i = 0; i < seen_count; i++) {
		if (!seen[i].ended)
			return false;
	}
	return true;
}

/* One thread only, because the thread sanitizer takes long for each. */
#ifdef __SANITIZE_THREAD__
#define MIXTURES 300
#else
#define MIXTURES 2000
#endif

TEST(any_mixture_ends_in_a_right_order)
{
	for (unsigned int seed = 0; seed < MIXTURES; seed++) {
		/* All else of the fixture is as before, and takes longer to make than a mixture. */
		gpd_deferred_destroy(&fake.session);
		memset(seen, 0, sizeof(seen));
		seen_count = step = 0;
		srand(seed);
		while (seen_count < 100) {
			(void)send_record(random_record());
			if (rand() % 5 == 0)
				finish_one();
			check_that_nothing_waits_in_vain();
		}
		while (!all_ended()) {
			finish_one();
			check_that_nothing_waits_in_vain();
		}
		for (unsigned int i = 0; i < seen_count; i++) {
			for (unsigned int k = 0; k < i; k++)
				assert_true(!comes_before(&seen[k], &seen[i]) ||
					    seen[k].ended <= seen[i].begun);
		}
	}
}

TEST(a_gate_keeps_what_comes_later_in_its_stream)
{
	struct gpd_deferred_entry *gate = gate_add(GPD_DEFERRED_GATE_DEPTH, LOOSE);
	struct seen *kept = work(LOOSE), *all = call(GP_CALL_gpFence);

	assert_false(kept->begun);
	assert_false(all->begun);
	assert_false(query(LOOSE));
	assert_true(work(FREE)->ended);
	assert_true(work(LEGACY)->ended);
	assert_true(call(GP_CALL_gpHostWrite)->ended);
	gate_open(gate);
	assert_true(kept->ended && all->ended);
	assert_true(gpd_deferred_is_empty(&fake.session));
}

/* As when the stream is full again while its kept records are carried out. */
TEST(a_gate_comes_before_what_is_kept)
{
	struct seen *first = function(FREE);
	struct seen *kept = work(FREE), *after = work(FREE);
	struct gpd_deferred_entry *gate = gate_add(GPD_DEFERRED_GATE_DEPTH, FREE);

	finish(first);
	assert_false(kept->begun);
	gate_open(gate);
	assert_true(kept->ended && kept->ended < after->ended);
	assert_true(gpd_deferred_is_empty(&fake.session));
}

TEST(a_gate_is_part_of_the_legacy_order)
{
	struct gpd_deferred_entry *gate = gate_add(GPD_DEFERRED_GATE_DEPTH, A);
	struct seen *blocking = work(B), *of_legacy = work(LEGACY), *later = work(B);

	assert_true(blocking->ended);
	assert_false(of_legacy->begun);
	assert_false(later->begun);
	gate_open(gate);
	assert_true(of_legacy->ended && of_legacy->ended < later->ended);
	gate = gate_add(GPD_DEFERRED_GATE_DEPTH, LEGACY);
	blocking = work(B);
	assert_false(blocking->begun);
	assert_true(work(LOOSE)->ended);
	gate_open(gate);
	assert_true(blocking->ended);
}

/* The GPU may wait for what the host does. */
TEST(the_hosts_stores_wait_for_nothing_that_is_kept)
{
	struct gpd_deferred_entry *gate = gate_add(GPD_DEFERRED_GATE_DEPTH, A);
	struct seen *all = send_record(
		(struct seen){ .call = GP_CALL_gpCopyIn, .stream = A, .barrier = true });

	assert_false(all->begun);
	assert_false(work(LOOSE)->begun);
	assert_true(call(GP_CALL_gpHostWrite)->ended);
	gate_open(gate);
	assert_true(all->ended);
}

UNIT_TEST_MAIN(NULL, NULL)
