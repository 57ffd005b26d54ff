/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of changes of host memory from the other side. Valid changes are stored inside their
 * ranges. Changes that the diff scan finds make both sides equal. */
#include "protocol/host_consistent_copy.h"
#include "protocol/host_merge.h"
#include "protocol/host_run_bitmap.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIZE ((size_t)4096)

struct end {
	uint64_t memory[SIZE / 8];
	const uint8_t *bytes; /* that the runs are in */
	size_t bytes_size;
	uint64_t total;
};

static void
store(void *arg, const struct gp_change *change)
{
	struct end *end = arg;
	const uint8_t *bytes = change->bytes;

	if (change->size == 0 || (change->same && change->size > GP_CHANGES_MASKED))
		abort();
	/* Runs with unchanged bytes were unpacked. */
	if (!change->same &&
	    (bytes < end->bytes || change->size > (size_t)(end->bytes + end->bytes_size - bytes)))
		abort();
	end->total += change->same ? 0 : change->size;
	if (change->address < SIZE && change->size <= SIZE - change->address)
		gp_merge_store((uint8_t *)end->memory + change->address, bytes, change->size,
			       change->same);
}

/* As an end reads what came. */
static void
read_changes(const uint8_t *data, size_t size)
{
	static struct end end;

	end = (struct end){ .bytes = data, .bytes_size = size };
	if (!gp_changes_are_valid(data, size))
		return;
	gp_changes_for_each(data, size, store, &end);
	if (end.total > size)
		abort();
}

static void
check_alike(const struct end *here, const struct end *shadow, const struct end *there)
{
	if (memcmp(here->memory, there->memory, SIZE) != 0 ||
	    memcmp(here->memory, shadow->memory, SIZE) != 0)
		abort();
}

/* One end's memory is the input; the other one gets to be alike, all at once or in parts, and in
 * records of a size that the input selects, with unchanged bytes or without. */
static void
exchange(const uint8_t *data, size_t size)
{
	static uint64_t room[(8192 + 8) / 8];
	static struct end here, shadow, there;
	static uint8_t marks[SIZE / 32 + 2];
	struct gp_consistent_copy picture = { .merges = data[0] & 16 };
	size_t offset = data[0] % 8, all = size - 2, at = 0, skip = 0;
	struct gp_changes_range range = { offset, (uint8_t *)here.memory + offset,
					  (uint8_t *)shadow.memory + offset, 0, marks };

	range.size = all > SIZE - 8 ? SIZE - 8 : all;
	memset(&here, 0, sizeof(here));
	memset(&shadow, 0, sizeof(shadow));
	memset(&there, 0, sizeof(there));
	memset(marks, data[1], sizeof(marks));
	memcpy((uint8_t *)here.memory + offset, data + 2, range.size);
	for (int part = data[0] & 8 ? GP_CONSISTENT_COPY_LONG : GP_CONSISTENT_COPY_ALL; part >= 0;
	     part--) {
		if (gp_consistent_copy_build(&picture, &range, 1,
					     (enum gp_consistent_copy_part)part) != range.size)
			abort();
		at = skip = 0;
		for (;;) {
			struct gp_changes changes = { .bytes = (uint8_t *)room,
						      .capacity = 4096 + (size_t)data[1] * 16 };

			if (!gp_changes_move(&changes, &picture.ordered, &at, &skip))
				break;
			if (changes.size > changes.capacity ||
			    !gp_changes_are_valid(changes.bytes, changes.size))
				abort();
			there.bytes = changes.bytes;
			there.bytes_size = changes.size;
			gp_changes_for_each(changes.bytes, changes.size, store, &there);
		}
		if (at != picture.ordered.size)
			abort();
	}
	gp_consistent_copy_fini(&picture);
	check_alike(&here, &shadow, &there);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	read_changes(copy, size);
	if (size > 2)
		exchange(copy, size);
	free(copy);
	return 0;
}
