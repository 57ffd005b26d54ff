/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/stats.h"

#include "base/clock.h"
#include "client/base/trace.h"
#include "gp_calls.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#define NUMBERS 65536
#define NS_PER_MS 1e6

static atomic_uint_fast64_t waits, posted, messages, bytes_sent, bytes_received;
static atomic_bool launched;
static uint64_t waits_at_launch;
/* Indexed by call number. Pages of unused numbers are never touched. */
static atomic_uint_fast32_t counts[NUMBERS];
static atomic_uint_fast64_t wait_counts[GPC_WAIT_END], wait_ns[GPC_WAIT_END];
static atomic_uint_fast64_t own_waits, own_ns;

/* The wait of this thread. */
static _Thread_local struct {
	unsigned int depth;
	unsigned int cause;
	uint64_t begun;
	bool own; /* the thread is one of the library's own */
} current;

/* Returns the new count. */
static uint64_t
counter_add(atomic_uint_fast64_t *counter, uint64_t amount)
{
	return atomic_fetch_add_explicit(counter, amount, memory_order_relaxed) + amount;
}

void
gpc_stats_call(uint16_t number, bool is_posted)
{
	/* The send lock serializes the calls of a session, so no atomic read-modify-write is used;
	 * calls of several sessions may be lost. Readers may read at any time. */
	atomic_store_explicit(&counts[number],
			      atomic_load_explicit(&counts[number], memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (is_posted)
		atomic_store_explicit(&posted,
				      atomic_load_explicit(&posted, memory_order_relaxed) + 1,
				      memory_order_relaxed);
}

void
gpc_stats_sent(size_t data, const struct iovec *bulk, int bulk_count)
{
	for (int i = 0; i < bulk_count; i++)
		data += bulk[i].iov_len;
	(void)counter_add(&messages, 1);
	data = counter_add(&bytes_sent, data);
	if (gpc_trace_is_on())
		gpc_trace_bytes(GPC_TRACE_SENT, data);
}

void
gpc_stats_received(size_t size)
{
	size = counter_add(&bytes_received, size);
	if (gpc_trace_is_on())
		gpc_trace_bytes(GPC_TRACE_RECEIVED, size);
}

void
gpc_stats_wait_start(unsigned int cause)
{
	if (current.depth++ > 0)
		return;
	current.cause = cause;
	current.begun = gp_now_ns();
	if (current.own) {
		(void)counter_add(&own_waits, 1);
		return;
	}
	(void)counter_add(&waits, 1);
	(void)counter_add(&wait_counts[cause], 1);
}

void
gpc_stats_wait_stop(void)
{
	if (--current.depth > 0)
		return;
	(void)counter_add(current.own ? &own_ns : &wait_ns[current.cause],
			  gp_now_ns() - current.begun);
	if (gpc_trace_is_on())
		gpc_trace_wait(current.cause, current.begun);
}

void
gpc_stats_set_own_thread(void)
{
	current.own = true;
}

void
gpc_stats_get_wait(unsigned int cause, uint64_t *count_p, uint64_t *ns_p)
{
	*count_p = atomic_load(&wait_counts[cause]);
	*ns_p = atomic_load(&wait_ns[cause]);
}

void
gpc_stats_launch(void)
{
	if (atomic_load_explicit(&launched, memory_order_relaxed) ||
	    atomic_exchange(&launched, true))
		return;
	__atomic_store_n(&waits_at_launch, atomic_load(&waits), __ATOMIC_RELAXED);
}

void
gpc_stats_get(struct gpc_stats *stats)
{
	*stats = (struct gpc_stats){
		.waits = atomic_load(&waits),
		.own_waits = atomic_load(&own_waits),
		.posted = atomic_load(&posted),
		.messages = atomic_load(&messages),
		.bytes_sent = atomic_load(&bytes_sent),
		.bytes_received = atomic_load(&bytes_received),
	};
	stats->waits_before_launch = atomic_load(&launched)
					     ? __atomic_load_n(&waits_at_launch, __ATOMIC_RELAXED)
					     : stats->waits;
}

const char *
gpc_call_name(uint16_t number)
{
	const struct gp_call_info *info = gp_call_find(number);

	return info ? info->name : "unknown call";
}

const char *
gpc_wait_name(unsigned int cause)
{
	static const char *const names[] = { "connection", "TLS handshake", "welcome", "window",
					     "room for calls" };

	return cause < NUMBERS ? gpc_call_name((uint16_t)cause) : names[cause - NUMBERS];
}

/* A line of the printed table, which is sorted by order, largest first. */
struct line {
	unsigned int number;
	uint64_t order;
};

static int
compare_lines(const void *a, const void *b)
{
	const struct line *left = a, *right = b;

	if (left->order != right->order)
		return left->order < right->order ? 1 : -1;
	return left->number < right->number ? -1 : 1;
}

/* Returns the numbers below `end` whose value is not 0, sorted by value. The caller frees the
 * list. */
static struct line *
lines_create(uint64_t (*value)(unsigned int number), unsigned int end, size_t *count_p)
{
	struct line *lines = malloc(end * sizeof(*lines));

	*count_p = 0;
	for (unsigned int i = 0; lines && i < end; i++) {
		uint64_t order = value(i);

		if (order > 0)
			lines[(*count_p)++] = (struct line){ .number = i, .order = order };
	}
	if (lines)
		qsort(lines, *count_p, sizeof(*lines), compare_lines);
	return lines;
}

static uint64_t
call_get_count(unsigned int number)
{
	return atomic_load_explicit(&counts[number], memory_order_relaxed);
}

static uint64_t
wait_get_count(unsigned int cause)
{
	return atomic_load_explicit(&wait_counts[cause], memory_order_relaxed);
}

static void
waits_print(FILE *file)
{
	size_t count;
	struct line *lines = lines_create(wait_get_count, GPC_WAIT_END, &count);

	for (size_t i = 0; i < count; i++)
		(void)fprintf(file, "gpupool: stats: %10" PRIu64 " waits %12.3f ms %s\n",
			      lines[i].order,
			      (double)atomic_load(&wait_ns[lines[i].number]) / NS_PER_MS,
			      gpc_wait_name(lines[i].number));
	free(lines);
}

static void
counts_print(FILE *file)
{
	size_t count;
	struct line *lines = lines_create(call_get_count, NUMBERS, &count);

	for (size_t i = 0; i < count; i++)
		(void)fprintf(file, "gpupool: stats: %10" PRIu64 " %s\n", lines[i].order,
			      gpc_call_name((uint16_t)lines[i].number));
	free(lines);
}

void
gpc_stats_print(FILE *file)
{
	const double mib = 1 << 20;
	struct gpc_stats stats;

	gpc_stats_get(&stats);
	(void)fprintf(file,
		      "gpupool: stats: %" PRIu64 " blocking round trips, %" PRIu64
		      " before the first kernel; %" PRIu64 " posted calls in %" PRIu64
		      " messages; sent %.1f MiB, received %.1f MiB\n",
		      stats.waits, stats.waits_before_launch, stats.posted, stats.messages,
		      (double)stats.bytes_sent / mib, (double)stats.bytes_received / mib);
	waits_print(file);
	if (stats.own_waits)
		(void)fprintf(file,
			      "gpupool: stats: besides, %" PRIu64
			      " round trips, %.3f ms, of the library's own threads\n",
			      stats.own_waits, (double)atomic_load(&own_ns) / NS_PER_MS);
	counts_print(file);
}
