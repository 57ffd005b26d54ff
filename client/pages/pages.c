/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pages/pages.h"

#include "base/lock.h"
#include "client/base/log.h"
#include "client/base/ranges.h"
#include "client/guard/guard.h"
#include "client/pages/page_memory.h"
#include "client/pages/page_userfault.h"
#include "client/pages/pages_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

atomic_uint gpc_pages_count;

static pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpc_ranges page_ranges GP_GUARDED_BY(lock);

static enum gpc_page_rights
state_to_rights(enum gpc_page_state state)
{
	switch (state) {
	case GPC_PAGE_CLEAN:
		return GPC_PAGE_RIGHTS_READ;
	case GPC_PAGE_WRITE_TRACKED:
		return GPC_PAGE_RIGHTS_FREE;
	case GPC_PAGE_DIRTY:
		return GPC_PAGE_RIGHTS_WRITE;
	default:
		return GPC_PAGE_RIGHTS_NONE;
	}
}

/* Returns the maximum rights that any block of the range has. */
static enum gpc_page_rights
pages_get_max_rights(const struct gpc_pages *pages)
{
	return pages->write_tracked > 0 ? GPC_PAGE_RIGHTS_FREE : GPC_PAGE_RIGHTS_WRITE;
}

static int
blocks_set_rights(const struct gpc_pages *pages, uint64_t block, uint64_t count,
		  enum gpc_page_rights from, enum gpc_page_rights to)
{
	return gpc_page_memory_set(&pages->memory, gpc_block_offset(block),
				   gpc_block_length(pages, block, count), from, to);
}

/* Includes the blocks in the interval that is scanned by a flush. */
static void
pages_widen_open(struct gpc_pages *pages, uint64_t block, uint64_t count)
{
	if (pages->open_from >= pages->open_to) {
		pages->open_from = block;
		pages->open_to = block + count;
	}
	if (block < pages->open_from)
		pages->open_from = block;
	if (block + count > pages->open_to)
		pages->open_to = block + count;
}

static void
blocks_set_states(struct gpc_pages *pages, uint64_t block, uint64_t count,
		  enum gpc_page_state state, bool direct)
{
	for (uint64_t i = block; i < block + count; i++) {
		pages->unused -= gpc_block_state(pages, i) == GPC_PAGE_UNUSED;
		pages->direct -= (pages->blocks[i] & GPC_BLOCK_DIRECT) != 0;
		pages->write_tracked -= gpc_block_state(pages, i) == GPC_PAGE_WRITE_TRACKED;
		pages->blocks[i] = (uint8_t)(state | (direct ? GPC_BLOCK_DIRECT : 0));
	}
	pages->unused += state == GPC_PAGE_UNUSED ? count : 0;
	pages->direct += direct ? count : 0;
	pages->write_tracked += state == GPC_PAGE_WRITE_TRACKED ? count : 0;
	if (gpc_block_is_local(state))
		pages_widen_open(pages, block, count);
}

/* Flushing. */

static bool
pages_push(const struct gpc_pages *pages, uint64_t offset, uint64_t size)
{
	return pages->calls->push(pages->owner, pages->memory.base + offset, size,
				  pages->memory.backing + offset);
}

/* Sends blocks that were writable and no longer are. */
static bool
blocks_push(const struct gpc_pages *pages, uint64_t block, uint64_t count,
	    enum gpc_page_state state)
{
	uint64_t at = gpc_block_offset(block), end = at + gpc_block_length(pages, block, count),
		 size;
	bool pushed = true;

	if (state == GPC_PAGE_DIRTY)
		return pages_push(pages, at, end - at);
	while (state == GPC_PAGE_WRITE_TRACKED &&
	       gpc_page_memory_written(&pages->memory, &at, end, &size)) {
		pushed &= pages_push(pages, at, size);
		at += size;
	}
	return pushed;
}

/* The number of a process's mappings with different protections is limited: when the limit is
 * reached, each range is reduced to one mapping by flushing all blocks. */
static bool
ranges_close_all(void) GP_LOCKED(lock)
{
	bool flushed = true;

	for (size_t i = 0; i < page_ranges.count; i++) {
		struct gpc_pages *pages = page_ranges.list[i].item;

		flushed &= blocks_set_rights(pages, 0, pages->count, pages_get_max_rights(pages),
					     GPC_PAGE_RIGHTS_NONE) == 0;
		for (uint64_t at = pages->open_from, run; at < pages->open_to; at += run) {
			enum gpc_page_state state = gpc_block_state(pages, at);

			run = gpc_block_run(pages, at, pages->open_to);
			if (!gpc_block_is_local(state))
				continue;
			flushed &= blocks_push(pages, at, run, state);
			blocks_set_states(pages, at, run, GPC_PAGE_REMOTE, false);
		}
		pages->open_from = pages->open_to = 0;
	}
	return flushed;
}

enum block_filter {
	FILTER_ALL,
	FILTER_PLAIN, /* all except those with GPC_BLOCK_DIRECT */
	FILTER_DIRECT /* those only */
};

static bool
block_is_direct(const struct gpc_pages *pages, uint64_t block)
{
	return pages->blocks[block] & GPC_BLOCK_DIRECT;
}

static bool
block_passes_filter(const struct gpc_pages *pages, uint64_t block, enum block_filter block_filter)
{
	return block_filter == FILTER_ALL ||
	       block_is_direct(pages, block) == (block_filter == FILTER_DIRECT);
}

/* A block is made inaccessible, or readable, before it is sent: later local writes then fault and
 * wait for the lock, so none is lost in between. */
static bool
blocks_flush(struct gpc_pages *pages, uint64_t from, uint64_t end, bool is_written,
	     enum block_filter block_filter) GP_LOCKED(lock)
{
	enum gpc_page_state next = is_written ? GPC_PAGE_REMOTE : GPC_PAGE_CLEAN;
	bool at_once = is_written && pages->direct == 0, flushed = true;

	if (at_once && blocks_set_rights(pages, from, end - from, pages_get_max_rights(pages),
					 GPC_PAGE_RIGHTS_NONE))
		return ranges_close_all();
	for (uint64_t at = from, run; at < end; at += run) {
		enum gpc_page_state state = gpc_block_state(pages, at);

		run = gpc_block_run(pages, at, end);
		if (is_written && pages->blocks[at] & GPC_BLOCK_ALLOCATED)
			blocks_set_states(pages, at, run, GPC_PAGE_REMOTE, false);
		if (!gpc_block_is_local(state) || state == next ||
		    !block_passes_filter(pages, at, block_filter))
			continue;
		if (!at_once && blocks_set_rights(pages, at, run, state_to_rights(state),
						  state_to_rights(next)))
			return ranges_close_all();
		flushed &= blocks_push(pages, at, run, state);
		/* A readable block that a host function has fetched is sent again if the host
		 * function changes it. */
		blocks_set_states(pages, at, run, next,
				  next == GPC_PAGE_CLEAN && block_is_direct(pages, at));
	}
	return flushed;
}

static bool
pages_flush(struct gpc_pages *pages, enum block_filter block_filter) GP_LOCKED(lock)
{
	bool flushed = true;

	if (pages->open_from < pages->open_to)
		flushed = blocks_flush(pages, pages->open_from, pages->open_to, true, block_filter);
	if (block_filter == FILTER_PLAIN && pages->direct == 0)
		pages->open_from = pages->open_to = 0;
	if (pages->unused == 0)
		gpc_page_memory_settle(&pages->memory);
	return flushed;
}

bool
gpc_pages_have(uint64_t base, uint64_t size)
{
	bool have;

	(void)pthread_mutex_lock(&lock);
	have = gpc_ranges_find(&page_ranges, base, size) != NULL;
	(void)pthread_mutex_unlock(&lock);
	return have;
}

void
gpc_pages_begin(void) GP_LOCKS(work_lock)
{
	gpc_guard_block();
	(void)pthread_mutex_lock(&work_lock);
	gpc_page_faults_forbid();
	gpc_page_faults_reinstall();
}

void
gpc_pages_end(void) GP_UNLOCKS(work_lock)
{
	gpc_page_faults_allow();
	/* A refused access may be retried after the call. */
	if (gpc_page_userfault_has_refused()) {
		(void)pthread_mutex_lock(&lock);
		gpc_page_userfault_restore();
		(void)pthread_mutex_unlock(&lock);
	}
	(void)pthread_mutex_unlock(&work_lock);
}

bool
gpc_pages_flush(const void *group)
{
	bool flushed = true;

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < page_ranges.count; i++) {
		struct gpc_pages *pages = page_ranges.list[i].item;

		if (pages->group == group)
			flushed &= pages_flush(pages, FILTER_PLAIN);
	}
	(void)pthread_mutex_unlock(&lock);
	return flushed;
}

bool
gpc_pages_flush_range(uint64_t base, uint64_t size, bool is_written)
{
	bool flushed = true;

	(void)pthread_mutex_lock(&lock);
	for (uint64_t at = base; flushed && at - base < size;) {
		const struct gpc_range *range =
			gpc_ranges_find(&page_ranges, at, size - (at - base));
		struct gpc_pages *pages = range ? range->item : NULL;
		uint64_t from, end;

		if (!range)
			break;
		from = at > range->base ? (at - range->base) / GPC_PAGES_BLOCK : 0;
		at = range->base + range->size;
		end = at - base < size ? pages->count
				       : (base + size - range->base - 1) / GPC_PAGES_BLOCK + 1;
		flushed = blocks_flush(pages, from, end, is_written, FILTER_ALL);
	}
	(void)pthread_mutex_unlock(&lock);
	return flushed;
}

void
gpc_pages_flush_direct(void)
{
	bool flushed = true;

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < page_ranges.count; i++) {
		struct gpc_pages *pages = page_ranges.list[i].item;

		if (pages->direct > 0)
			flushed &= pages_flush(pages, FILTER_DIRECT);
	}
	(void)pthread_mutex_unlock(&lock);
	if (!flushed)
		gpc_log(GPC_LOG_ERROR, "managed memory of a host function cannot be sent");
}

/* Fetching. */

/* Sequential accesses increase the number of blocks fetched at once. */
static uint64_t
pages_count_to_open(struct gpc_pages *pages, uint64_t block)
{
	uint64_t end, most = GPC_PAGES_RUN_MAX / GPC_PAGES_BLOCK;

	pages->run = block == pages->next ? pages->run * 2 : 1;
	if (pages->run > most)
		pages->run = most;
	end = block + pages->run < pages->count ? block + pages->run : pages->count;
	return gpc_block_run(pages, block, end);
}

static bool
blocks_open(struct gpc_pages *pages, uint64_t block, uint64_t count, enum gpc_page_state state,
	    bool direct) GP_LOCKED(lock)
{
	enum gpc_page_rights from = state_to_rights(gpc_block_state(pages, block)),
			     to = state_to_rights(state);

	int r = blocks_set_rights(pages, block, count, from, to);

	if (r < 0)
		r = ranges_close_all()
			    ? blocks_set_rights(pages, block, count, GPC_PAGE_RIGHTS_NONE, to)
			    : r;
	if (r < 0)
		return false;
	blocks_set_states(pages, block, count, r > 0 ? GPC_PAGE_DIRTY : state, direct);
	pages->next = block + count;
	return true;
}

static bool
blocks_fetch(const struct gpc_pages *pages, uint64_t block, uint64_t count)
{
	return pages->calls->fetch(pages->owner, pages->memory.base + gpc_block_offset(block),
				   gpc_block_length(pages, block, count),
				   pages->memory.backing + gpc_block_offset(block));
}

/* Handles a fault on a local block: another thread was faster, or the kernel has unmapped the
 * page. */
static bool
page_open(struct gpc_pages *pages, uint64_t address) GP_LOCKED(lock)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), offset = address - pages->memory.base;
	uint64_t block = offset / GPC_PAGES_BLOCK;
	int r = gpc_page_memory_reopen(&pages->memory, offset & ~(page - 1), page,
				       state_to_rights(gpc_block_state(pages, block)));

	/* The page has been written to; handled like a write fault. */
	return r <= 0 ? r == 0
		      : blocks_open(pages, block, 1, GPC_PAGE_DIRTY, block_is_direct(pages, block));
}

/* A fault on a readable block is a write, unless the access is known to be a read. */
static bool
block_serve(struct gpc_pages *pages, uint64_t address, uint64_t block, enum gpc_page_access access,
	    bool direct) GP_LOCKED(lock)
{
	uint64_t count;

	switch (gpc_block_state(pages, block)) {
	case GPC_PAGE_REMOTE:
		count = pages_count_to_open(pages, block);
		return blocks_fetch(pages, block, count) &&
		       blocks_open(pages, block, count,
				   access == GPC_PAGE_WRITE ? GPC_PAGE_DIRTY : GPC_PAGE_CLEAN,
				   direct);
	case GPC_PAGE_UNUSED:
		count = pages_count_to_open(pages, block);
		return blocks_open(pages, block, count, GPC_PAGE_DIRTY, direct);
	case GPC_PAGE_CLEAN:
		if (access == GPC_PAGE_READ)
			return page_open(pages, address);
		count = pages_count_to_open(pages, block);
		return blocks_open(pages, block, count, GPC_PAGE_DIRTY,
				   block_is_direct(pages, block));
	default:
		return page_open(pages, address);
	}
}

static struct gpc_pages *
pages_find(uint64_t address, uint64_t *block_p) GP_LOCKED(lock)
{
	const struct gpc_range *range = gpc_ranges_find(&page_ranges, address, 1);

	if (!range)
		return NULL;
	*block_p = (address - range->base) / GPC_PAGES_BLOCK;
	return range->item;
}

/* Releases the lock while waiting, as the work may wait for a thread with direct faults. The owner
 * outlives its memory. */
static bool
pages_await(const struct gpc_pages *pages) GP_LOCKED(lock)
{
	const struct gpc_pages_ops *calls = pages->calls;
	void *owner = pages->owner;
	bool done;

	(void)pthread_mutex_unlock(&lock);
	done = calls->await(owner);
	(void)pthread_mutex_lock(&lock);
	return done;
}

static bool
address_serve(uint64_t address, enum gpc_page_access access, bool direct)
{
	struct gpc_pages *pages;
	uint64_t block;
	bool served;

	(void)pthread_mutex_lock(&lock);
	pages = pages_find(address, &block);
	served = pages != NULL;
	if (served && !direct && gpc_block_state(pages, block) == GPC_PAGE_REMOTE) {
		served = pages_await(pages);
		pages = pages_find(address, &block);
	}
	served = served && pages && block_serve(pages, address, block, access, direct);
	(void)pthread_mutex_unlock(&lock);
	return served;
}

bool
gpc_pages_serve(uint64_t address, enum gpc_page_access access, bool direct)
{
	bool served;

	if (direct)
		return address_serve(address, access, true);
	(void)pthread_mutex_lock(&work_lock);
	served = address_serve(address, access, false);
	(void)pthread_mutex_unlock(&work_lock);
	return served;
}

/* Ranges. */

/* Marks the contents of the blocks as undefined. If possible, the kernel will report what is
 * written to them. */
static void
blocks_set_unused(struct gpc_pages *pages, uint64_t block, uint64_t count) GP_LOCKED(lock)
{
	enum gpc_page_rights from = pages_get_max_rights(pages);

	if (count == 0)
		return;
	for (uint64_t at = block, run; at < block + count; at += run) {
		run = gpc_block_run(pages, at, block + count);
		if (gpc_block_state(pages, at) != GPC_PAGE_UNUSED)
			gpc_page_memory_drop(&pages->memory, gpc_block_offset(at),
					     gpc_block_length(pages, at, run));
	}
	/* Blocks that cannot be opened now are opened when they are touched. */
	if (gpc_page_memory_tracks_writes(&pages->memory) &&
	    blocks_set_rights(pages, block, count, GPC_PAGE_RIGHTS_NONE, GPC_PAGE_RIGHTS_FREE) ==
		    0) {
		blocks_set_states(pages, block, count, GPC_PAGE_WRITE_TRACKED, false);
		return;
	}
	if (blocks_set_rights(pages, block, count, from, GPC_PAGE_RIGHTS_NONE))
		(void)ranges_close_all();
	blocks_set_states(pages, block, count, GPC_PAGE_UNUSED, false);
	for (uint64_t i = block; i < block + count; i++)
		pages->blocks[i] |= GPC_BLOCK_ALLOCATED;
	pages_widen_open(pages, block, count);
}

void
gpc_pages_set_unused(uint64_t base, uint64_t size)
{
	const struct gpc_range *range;
	struct gpc_pages *pages;
	uint64_t run = 0, at;

	(void)pthread_mutex_lock(&lock);
	range = gpc_ranges_find(&page_ranges, base, 1);
	pages = range ? range->item : NULL;
	for (at = base; range && at < base + size; at += GPC_PAGES_BLOCK - at % GPC_PAGES_BLOCK) {
		uint64_t block = (at - range->base) / GPC_PAGES_BLOCK;
		uint64_t start = range->base + gpc_block_offset(block);
		uint64_t length = gpc_block_length(pages, block, 1);
		bool whole = start >= base && start + length <= base + size;

		if (whole || gpc_block_state(pages, block) == GPC_PAGE_UNUSED) {
			run++;
			continue;
		}
		blocks_set_unused(pages, block - run, run);
		run = 0;
	}
	if (range)
		blocks_set_unused(pages, (at - 1 - range->base) / GPC_PAGES_BLOCK + 1 - run, run);
	(void)pthread_mutex_unlock(&lock);
}

void
gpc_pages_expect(uint64_t address)
{
	struct gpc_pages *pages;
	uint64_t block;

	(void)pthread_mutex_lock(&lock);
	pages = pages_find(address, &block);
	if (pages) {
		pages->next = block;
		pages->run = GPC_PAGES_RUN_MAX / GPC_PAGES_BLOCK;
	}
	(void)pthread_mutex_unlock(&lock);
}

static int
pages_insert(struct gpc_pages *pages)
{
	int r;

	(void)pthread_mutex_lock(&lock);
	r = gpc_ranges_add(&page_ranges, pages->memory.base, pages->memory.size, pages);
	if (r == 0)
		atomic_fetch_add(&gpc_pages_count, 1);
	(void)pthread_mutex_unlock(&lock);
	return r;
}

int
gpc_pages_create(uint64_t base, uint64_t size, bool is_known, const struct gpc_pages_ops *calls,
		 void *owner, const void *group)
{
	uint64_t count = (size + GPC_PAGES_BLOCK - 1) / GPC_PAGES_BLOCK;
	struct gpc_pages *pages = calloc(1, sizeof(*pages) + count);
	int r = pages ? gpc_page_faults_start(gpc_pages_serve) : -ENOMEM;

	if (r == 0)
		r = gpc_page_memory_init(&pages->memory, base, size, !is_known);
	if (r) {
		free(pages);
		return r;
	}
	pages->count = count;
	pages->calls = calls;
	pages->owner = owner;
	pages->group = group;
	pages->next = UINT64_MAX;
	blocks_set_states(pages, 0, count, is_known ? GPC_PAGE_REMOTE : GPC_PAGE_UNUSED, false);
	r = pages_insert(pages);
	if (r) {
		gpc_page_memory_fini(&pages->memory);
		free(pages);
		return r;
	}
	gpc_page_faults_cover(base, size);
	gpc_page_faults_reinstall();
	return 0;
}

void
gpc_pages_destroy(uint64_t base)
{
	struct gpc_pages *pages = NULL;
	struct gpc_range *range;

	(void)pthread_mutex_lock(&lock);
	range = gpc_ranges_find(&page_ranges, base, 1);
	if (range) {
		pages = range->item;
		gpc_ranges_remove(&page_ranges, range);
		atomic_fetch_sub(&gpc_pages_count, 1);
		gpc_page_memory_fini(&pages->memory);
	}
	(void)pthread_mutex_unlock(&lock);
	free(pages);
}

enum gpc_page_state
gpc_pages_state(uint64_t address)
{
	enum gpc_page_state state = GPC_PAGE_REMOTE;
	const struct gpc_pages *pages;
	uint64_t block;

	(void)pthread_mutex_lock(&lock);
	pages = pages_find(address, &block);
	if (pages)
		state = gpc_block_state(pages, block);
	(void)pthread_mutex_unlock(&lock);
	return state;
}

/* Forks. */

/* whether this thread holds the lock for a fork */
static __thread bool fork_locked;

/* A signal handler that has interrupted a call must neither wait for a lock of that call nor fetch
 * pages: its child gets no managed memory. */
void
gpc_pages_before_fork(void) GP_LOCK_UNCHECKED
{
	fork_locked = !gpc_guard_is_inside();
	if (!fork_locked)
		return;
	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < page_ranges.count; i++)
		gpc_pages_save(page_ranges.list[i].item);
}

void
gpc_pages_after_fork(bool is_child) GP_LOCK_UNCHECKED
{
	if (is_child)
		gpc_page_faults_forked();
	if (!fork_locked && is_child)
		(void)pthread_mutex_init(&lock, NULL);
	for (size_t i = 0; fork_locked && i < page_ranges.count; i++) {
		struct gpc_pages *pages = page_ranges.list[i].item;

		if (is_child)
			gpc_pages_restore(pages);
		gpc_pages_drop_saved(pages);
	}
	if (is_child) {
		page_ranges.count = 0;
		atomic_store(&gpc_pages_count, 0);
		(void)pthread_mutex_init(&work_lock, NULL);
	}
	if (fork_locked)
		(void)pthread_mutex_unlock(&lock);
	fork_locked = false;
}
