/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of host memory from the other end: what is sound is stored inside of what it names; and
 * what has changed is found, whatever it is, so that both ends are alike. */
#include "protocol/host_changes.h"

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

	if (change->size == 0 || bytes < end->bytes ||
	    change->size > (size_t)(end->bytes + end->bytes_size - bytes))
		abort();
	end->total += change->size;
	if (change->address < SIZE && change->size <= SIZE - change->address)
		gp_changes_store((uint8_t *)end->memory + change->address, bytes, change->size);
}

/* As an end reads what came. */
static void
read_changes(const uint8_t *data, size_t size)
{
	static struct end end;

	end = (struct end){ .bytes = data, .bytes_size = size };
	if (!gp_changes_are_sound(data, size))
		return;
	gp_changes_each(data, size, store, &end);
	if (end.total > size)
		abort();
}

/* One end's memory is the input, in a room that the input says; the other one gets to be alike. */
static void
exchange(const uint8_t *data, size_t size)
{
	static uint64_t room[(8192 + 8) / 8];
	static struct end here, shadow, there;
	size_t offset = data[0] % 8, all = size - 2, at = 0;
	struct gp_changes_range range;

	if (all > SIZE - 8)
		all = SIZE - 8;
	memset(&here, 0, sizeof(here));
	memset(&shadow, 0, sizeof(shadow));
	memset(&there, 0, sizeof(there));
	memcpy((uint8_t *)here.memory + offset, data + 2, all);
	while (at < all) {
		struct gp_changes changes = { .bytes = (uint8_t *)room,
					      .room = 4096 + (size_t)data[1] * 16 };
		uint64_t done;

		range = (struct gp_changes_range){ offset + at,
						   (uint8_t *)here.memory + offset + at,
						   (uint8_t *)shadow.memory + offset + at,
						   all - at };
		done = gp_changes_find(&changes, &range, 1);
		if (done == 0 || changes.size > changes.room ||
		    !gp_changes_are_sound(changes.bytes, changes.size))
			abort();
		there.bytes = changes.bytes;
		there.bytes_size = changes.size;
		gp_changes_each(changes.bytes, changes.size, store, &there);
		at += done;
	}
	if (memcmp(here.memory, there.memory, SIZE) != 0 ||
	    memcmp(here.memory, shadow.memory, SIZE) != 0)
		abort();
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
