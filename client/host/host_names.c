/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/host_names.h"

#include "client/base/log.h"
#include "client/base/ranges.h"
#include "client/context/context.h"
#include "client/host/host_block.h"
#include "client/host/host_space.h"
#include "protocol/image_info.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that are looked at together; and of those at which any byte may begin an address. */
#define STRETCH 512
#define LOOKED_AT ((size_t)64)
/* The program may write what is read here: either value will do. */
#define BESIDE_PROGRAM __attribute__((no_sanitize_thread))

void
gpc_host_names_begin(struct gpc_host_names *names, const struct gpc_session *session)
{
	names->session = session;
	names->failed = names->doubtful = false;
	names->size = 0;
	if (atomic_load(&gpc_host_memory_cold) > 0)
		gpc_host_space_bounds(&names->base, &names->size);
}

void
gpc_host_names_fini(struct gpc_host_names *names)
{
	free(names->list);
	*names = (struct gpc_host_names){ 0 };
}

/* Once: who asks why a kernel does not find its data is told. */
static void
say_left_over(uint64_t address)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (gpc_log_wants(GPC_LOG_INFO) && !atomic_flag_test_and_set(&said))
		gpc_log(GPC_LOG_INFO,
			"%#llx at an odd place, or in a large structure of a kernel's parameters, "
			"is taken for left over, and no kernel reaches pinned memory there",
			(unsigned long long)address);
}

static bool
is_to_be_reached(const struct gpc_host_names *names, uint64_t address)
{
	struct gpc_host_block block;
	struct gpc_range range;

	if (!gpc_host_space_contains(address) ||
	    !gpc_host_block_find(address, &range, &block, NULL) ||
	    block.context->scope.session != names->session)
		return false;
	if (block.state != GPC_HOST_COLD)
		return block.doubted && !names->doubtful;
	if (!names->doubtful || !block.copied)
		return true;
	say_left_over(address);
	return false;
}

void
gpc_host_names_add(struct gpc_host_names *names, uint64_t value)
{
	if (names->failed || !is_to_be_reached(names, value))
		return;
	if (names->count == names->room) {
		size_t room = names->room ? names->room * 2 : 64;
		struct gpc_host_name *list = realloc(names->list, room * sizeof(*list));

		if (!list) {
			names->failed = true;
			return;
		}
		names->list = list;
		names->room = room;
	}
	names->list[names->count++] = (struct gpc_host_name){ value, names->doubtful };
}

bool
gpc_host_names_is_doubtful(const struct gp_kernel_info *kernel, size_t place)
{
	if (place % 8)
		return true;
	for (uint32_t i = 0; kernel && i < kernel->param_count; i++) {
		const struct gp_param_info *param = &kernel->params[i];

		if (place >= param->offset && place - param->offset < param->size)
			return param->size >= GPC_HOST_NAMES_HALF_FILLED;
	}
	return false;
}

/* At this place of the bytes. */
static void
note(struct gpc_host_names *names, uint64_t value, const struct gp_kernel_info *kernel,
     size_t place)
{
	if (__builtin_expect(value - names->base >= names->size, 1))
		return;
	names->doubtful = gpc_host_names_is_doubtful(kernel, place);
	if (gpc_host_names_note(names, value) && kernel)
		gpc_log(GPC_LOG_INFO, "byte %zu of the parameters of %s names pinned memory: %#llx",
			place, kernel->name ? kernel->name : "a kernel", (unsigned long long)value);
	names->doubtful = false;
}

/* From one place on. */
static void
look_at_each(struct gpc_host_names *names, const uint8_t *at, size_t size,
	     const struct gp_kernel_info *kernel, size_t place)
{
	bool aligned = (uintptr_t)at % 8 == 0;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t value;

		/* The program may write there meanwhile. */
		if (aligned)
			value = __atomic_load_n((const uint64_t *)(const void *)(at + i),
						__ATOMIC_RELAXED);
		else
			memcpy(&value, at + i, sizeof(value));
		note(names, value, kernel, place + i);
	}
}

/* Whether one of the bytes is this: the compiler has many of them compared at once. */
static BESIDE_PROGRAM bool
has_byte(const uint8_t *at, size_t size, uint8_t byte)
{
	uint8_t any = 0;

	for (size_t i = 0; i < size; i++)
		any |= at[i] == byte;
	return any;
}

/* What packed structures hold, at any byte.  At an odd place more is left over than meant. */
static BESIDE_PROGRAM void
look_at_each_byte(struct gpc_host_names *names, const uint8_t *at, size_t size,
		  const struct gp_kernel_info *kernel)
{
	uint8_t sixth = (uint8_t)(names->base >> 40);
	bool one = (names->base + names->size - 1) >> 40 == names->base >> 40;

	for (size_t i = 0, part; i + 8 <= size; i += part) {
		part = size - 7 - i < LOOKED_AT ? size - 7 - i : LOOKED_AT;
		/* All such addresses have the sixth byte in common. */
		if (one && !has_byte(at + i + 5, part, sixth))
			continue;
		for (size_t j = i; j < i + part; j++) {
			uint64_t value;

			memcpy(&value, at + j, sizeof(value));
			note(names, value, kernel, j);
		}
	}
}

/* Whether one of the numbers may be an address, by their upper halves: the compiler has four of
 * these compared at once. */
static BESIDE_PROGRAM bool
may_have_names(const struct gpc_host_names *names, const uint8_t *at)
{
	uint32_t first = (uint32_t)(names->base >> 32), any = 0;
	uint32_t span = (uint32_t)((names->base + names->size - 1) >> 32) - first;

	for (size_t i = 0; i < STRETCH; i += 8) {
		uint64_t value;

		memcpy(&value, at + i, sizeof(value));
		any |= (uint32_t)(value >> 32) - first <= span;
	}
	return any;
}

void
gpc_host_names_look(struct gpc_host_names *names, const void *bytes, size_t size,
		    const struct gp_kernel_info *kernel)
{
	const uint8_t *at = bytes;
	size_t place = 0;

	if (!names->size)
		return;
	if (size < GPC_HOST_NAMES_UNALIGNED) {
		look_at_each_byte(names, at, size, kernel);
		return;
	}
	for (; size - place >= STRETCH; place += STRETCH) {
		if (may_have_names(names, at + place))
			look_at_each(names, at + place, STRETCH, kernel, place);
	}
	look_at_each(names, at + place, size - place, kernel, place);
}

bool
gpc_host_names_take(struct gpc_host_names *names, struct gpc_host_name *name_p)
{
	if (names->count == 0)
		return false;
	*name_p = names->list[--names->count];
	return true;
}
