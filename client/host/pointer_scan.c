/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/pointer_scan.h"

#include "client/base/list.h"
#include "client/base/log.h"
#include "client/base/ranges.h"
#include "client/context/context.h"
#include "client/host/host_block.h"
#include "client/host/host_space.h"
#include "protocol/image_info.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Number of bytes that are checked at once, for aligned and for unaligned addresses. */
#define SCAN_BLOCK 512
#define SCAN_UNALIGNED_BLOCK ((size_t)64)
/* The program may concurrently write the bytes read here: either value is acceptable. */
#define RACES_WITH_PROGRAM __attribute__((no_sanitize_thread))

void
gpc_pointer_scan_init(struct gpc_pointer_scan *pointers, const struct gpc_session *session)
{
	pointers->session = session;
	pointers->failed = pointers->may_be_stale = false;
	pointers->size = 0;
	if (atomic_load(&gpc_host_memory_copy_only) > 0)
		gpc_host_space_bounds(&pointers->base, &pointers->size);
}

void
gpc_pointer_scan_fini(struct gpc_pointer_scan *pointers)
{
	free(pointers->list);
	*pointers = (struct gpc_pointer_scan){ 0 };
}

/* Logged once, as an explanation if a kernel does not find its data. */
static void
log_stale_pointer(uint64_t address)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;

	if (gpc_log_is_enabled(GPC_LOG_INFO) && !atomic_flag_test_and_set(&logged))
		gpc_log(GPC_LOG_INFO,
			"%#llx at an unaligned offset, or in a large structure of a kernel's "
			"parameters, is treated as stale, and no kernel reaches pinned memory "
			"there",
			(unsigned long long)address);
}

static bool
pointer_needs_mapping(const struct gpc_pointer_scan *pointers, uint64_t address)
{
	struct gpc_host_block block;
	struct gpc_range range;

	if (!gpc_host_space_contains(address) ||
	    !gpc_host_block_find(address, &range, &block, NULL) ||
	    block.context->scope.session != pointers->session)
		return false;
	if (block.state != GPC_HOST_COPY_ONLY)
		return block.speculative && !pointers->may_be_stale;
	if (!pointers->may_be_stale || !block.copied)
		return true;
	log_stale_pointer(address);
	return false;
}

void
gpc_pointer_scan_add(struct gpc_pointer_scan *pointers, uint64_t value)
{
	struct gpc_scanned_pointer *list;

	if (pointers->failed || !pointer_needs_mapping(pointers, value))
		return;
	list = gpc_list_grow(pointers->list, pointers->count, &pointers->capacity, sizeof(*list));
	pointers->failed = !list;
	if (!list)
		return;
	pointers->list = list;
	pointers->list[pointers->count++] =
		(struct gpc_scanned_pointer){ value, pointers->may_be_stale };
}

bool
gpc_pointer_scan_may_be_stale(const struct gp_kernel_info *kernel, size_t place)
{
	if (place % 8)
		return true;
	for (uint32_t i = 0; kernel && i < kernel->param_count; i++) {
		const struct gp_param_info *param = &kernel->params[i];

		if (place >= param->offset && place - param->offset < param->size)
			return param->size >= GPC_POINTER_SCAN_HALF_FILLED;
	}
	return false;
}

/* Checks the value at this offset of the bytes. */
static void
scan_check_value(struct gpc_pointer_scan *pointers, uint64_t value,
		 const struct gp_kernel_info *kernel, size_t place)
{
	if (__builtin_expect(value - pointers->base >= pointers->size, 1))
		return;
	pointers->may_be_stale = gpc_pointer_scan_may_be_stale(kernel, place);
	if (gpc_pointer_scan_check(pointers, value) && kernel)
		gpc_log(GPC_LOG_INFO, "byte %zu of the parameters of %s names pinned memory: %#llx",
			place, kernel->name ? kernel->name : "a kernel", (unsigned long long)value);
	pointers->may_be_stale = false;
}

/* Checks the aligned values; `place` is the offset of the first byte. */
static void
scan_aligned(struct gpc_pointer_scan *pointers, const uint8_t *at, size_t size,
	     const struct gp_kernel_info *kernel, size_t place)
{
	bool aligned = (uintptr_t)at % 8 == 0;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t value;

		/* The program may write concurrently. */
		if (aligned)
			value = __atomic_load_n((const uint64_t *)(const void *)(at + i),
						__ATOMIC_RELAXED);
		else
			memcpy(&value, at + i, sizeof(value));
		scan_check_value(pointers, value, kernel, place + i);
	}
}

/* Returns whether any of the bytes has this value, in a form that the compiler vectorizes. */
static RACES_WITH_PROGRAM bool
bytes_contain(const uint8_t *at, size_t size, uint8_t byte)
{
	uint8_t any = 0;

	for (size_t i = 0; i < size; i++)
		any |= at[i] == byte;
	return any;
}

/* Checks packed structures, at every byte offset. Addresses at unaligned offsets are more often
 * stale than intended. */
static RACES_WITH_PROGRAM void
scan_unaligned(struct gpc_pointer_scan *pointers, const uint8_t *at, size_t size,
	       const struct gp_kernel_info *kernel)
{
	uint8_t sixth = (uint8_t)(pointers->base >> 40);
	bool one = (pointers->base + pointers->size - 1) >> 40 == pointers->base >> 40;

	for (size_t i = 0, part; i + 8 <= size; i += part) {
		part = size - 7 - i < SCAN_UNALIGNED_BLOCK ? size - 7 - i : SCAN_UNALIGNED_BLOCK;
		/* All such addresses have the same sixth byte. */
		if (one && !bytes_contain(at + i + 5, part, sixth))
			continue;
		for (size_t j = i; j < i + part; j++) {
			uint64_t value;

			memcpy(&value, at + j, sizeof(value));
			scan_check_value(pointers, value, kernel, j);
		}
	}
}

/* Returns whether any of the values may be an address, judged by the upper halves, in a form that
 * the compiler vectorizes. */
static RACES_WITH_PROGRAM bool
block_may_have_pointers(const struct gpc_pointer_scan *pointers, const uint8_t *at)
{
	uint32_t first = (uint32_t)(pointers->base >> 32), any = 0;
	uint32_t span = (uint32_t)((pointers->base + pointers->size - 1) >> 32) - first;

	for (size_t i = 0; i < SCAN_BLOCK; i += 8) {
		uint64_t value;

		memcpy(&value, at + i, sizeof(value));
		any |= (uint32_t)(value >> 32) - first <= span;
	}
	return any;
}

void
gpc_pointer_scan_run(struct gpc_pointer_scan *pointers, const void *bytes, size_t size,
		     const struct gp_kernel_info *kernel)
{
	const uint8_t *at = bytes;
	size_t place = 0;

	if (!pointers->size)
		return;
	if (size < GPC_POINTER_SCAN_UNALIGNED) {
		scan_unaligned(pointers, at, size, kernel);
		return;
	}
	for (; size - place >= SCAN_BLOCK; place += SCAN_BLOCK) {
		if (block_may_have_pointers(pointers, at + place))
			scan_aligned(pointers, at + place, SCAN_BLOCK, kernel, place);
	}
	scan_aligned(pointers, at + place, size - place, kernel, place);
}

bool
gpc_pointer_scan_pop(struct gpc_pointer_scan *pointers, struct gpc_scanned_pointer *name_p)
{
	if (pointers->count == 0)
		return false;
	*name_p = pointers->list[--pointers->count];
	return true;
}
