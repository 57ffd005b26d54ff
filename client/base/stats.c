/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/stats.h"

#include "gp_calls.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#define NUMBERS 65536

static atomic_uint_fast64_t waits, posted, messages, bytes_sent, bytes_received;
static atomic_bool launched;
static uint64_t waits_at_launch;
/* Indexed by call number; the pages of unused numbers are never touched. */
static atomic_uint_fast32_t counts[NUMBERS];

static void
add(atomic_uint_fast64_t *counter, uint64_t amount)
{
	atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

void
gpc_stats_call(uint16_t number, bool is_posted)
{
	/* Under a lock, so that no locked instruction is needed; readers may look at any time. */
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
	add(&messages, 1);
	add(&bytes_sent, data);
}

void
gpc_stats_received(size_t size)
{
	add(&bytes_received, size);
}

void
gpc_stats_wait(void)
{
	add(&waits, 1);
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

static int
compare_counts(const void *a, const void *b)
{
	uint_fast32_t left = atomic_load(&counts[*(const uint16_t *)a]);
	uint_fast32_t right = atomic_load(&counts[*(const uint16_t *)b]);

	return left < right ? 1 : left > right ? -1 : 0;
}

static void
print_counts(FILE *file)
{
	uint16_t *numbers = malloc(NUMBERS * sizeof(*numbers));
	size_t used = 0;

	if (!numbers)
		return;
	for (size_t i = 0; i < NUMBERS; i++) {
		if (atomic_load_explicit(&counts[i], memory_order_relaxed) > 0)
			numbers[used++] = (uint16_t)i;
	}
	qsort(numbers, used, sizeof(*numbers), compare_counts);
	for (size_t i = 0; i < used; i++)
		(void)fprintf(file, "gpupool: stats: %10" PRIuFAST32 " %s\n",
			      atomic_load(&counts[numbers[i]]), gpc_call_name(numbers[i]));
	free(numbers);
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
	print_counts(file);
}
