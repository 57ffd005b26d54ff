/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pages/page_userfault.h"

#include "base/lock.h"
#include "base/thread.h"
#include "base/userfault.h"
#include "transport/descriptor.h"
#include "transport/own_fd.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* How many pages that were refused can be restored. */
#define REFUSED_MAX 16

enum order_kind {
	ORDER_REGISTER,
	ORDER_UNREGISTER,
	ORDER_MAP,
	ORDER_MAP_PROTECTED,
	ORDER_PROTECT,
	ORDER_WAKE,
};

/* What the descriptor is needed for. */
struct order {
	enum order_kind kind;
	uint64_t base, size;
	bool is_writable;
	const void *bytes;
	int result;
	atomic_bool is_done;
};

static gpc_page_userfault_report *report;
static int descriptor = -1; /* its number in both tables */
static uint64_t page;

/*
 * An order for the reader: the thread that gives it touches the bell, a page that is registered and
 * not mapped, and so waits for the reader.
 */
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
static struct order *_Atomic order_given;
static const volatile uint8_t *bell;

static atomic_uint_fast64_t refused[REFUSED_MAX]; /* 0: none */
static atomic_uint refused_count;

/* 1: it reads; or -errno. */
static atomic_int reader_state;

static int
order_run(const struct order *order)
{
	switch (order->kind) {
	case ORDER_REGISTER:
		return gp_userfault_register(descriptor, order->base, order->size);
	case ORDER_UNREGISTER:
		return gp_userfault_unregister(descriptor, order->base, order->size);
	case ORDER_MAP:
		return gp_userfault_map(descriptor, order->base, order->size);
	case ORDER_MAP_PROTECTED:
		return gp_userfault_map_protected(descriptor, order->base, order->size,
						  order->bytes);
	case ORDER_PROTECT:
		return gp_userfault_protect(descriptor, order->base, order->size,
					    order->is_writable);
	case ORDER_WAKE:
		return gp_userfault_wake(descriptor, order->base, order->size);
	}
	return -EINVAL;
}

/* The reader. */

static void
reader_answer_bell(void)
{
	struct order *order = atomic_exchange(&order_given, NULL);

	if (order) {
		order->result = order_run(order);
		atomic_store(&order->is_done, true);
	}
	(void)gp_userfault_map_zeros(descriptor, (uintptr_t)bell, page);
	(void)gp_userfault_wake(descriptor, (uintptr_t)bell, page);
}

static void
reader_set_state(int state)
{
	atomic_store(&reader_state, state);
	(void)syscall(SYS_futex, &reader_state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* A table of descriptors that has nothing but ours. */
static int
reader_unshare(void)
{
	if (syscall(SYS_close_range, (unsigned int)descriptor + 1, ~0U, CLOSE_RANGE_UNSHARE))
		return -errno;
	if (descriptor > 0 && syscall(SYS_close_range, 0U, (unsigned int)descriptor - 1, 0U))
		return -errno;
	return 0;
}

static void *
reader_run(void *arg)
{
	struct gp_userfault_event events[GP_USERFAULT_EVENTS];
	int count, r = reader_unshare();

	(void)arg;
	reader_set_state(r ? r : 1);
	if (r)
		return NULL;
	while ((count = gp_userfault_read(descriptor, events)) >= 0 || count == -EINTR ||
	       count == -EAGAIN) {
		for (int i = 0; i < count; i++) {
			if (events[i].address == (uintptr_t)bell)
				reader_answer_bell();
			else
				report(events[i].address,
				       events[i].is_write ? GPC_PAGE_WRITE : GPC_PAGE_READ,
				       events[i].thread);
		}
	}
	return NULL;
}

static int
reader_start(void)
{
	int r = gp_thread_start("gpupool-faults", 0, reader_run, NULL);

	while (r == 0 && atomic_load(&reader_state) == 0)
		(void)syscall(SYS_futex, &reader_state, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return r == 0 && atomic_load(&reader_state) < 0 ? atomic_load(&reader_state) : r;
}

static int
bell_create(void)
{
	void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (memory == MAP_FAILED)
		return -errno;
	r = gp_userfault_register_missing(descriptor, (uintptr_t)memory, page);
	if (r)
		(void)munmap(memory, page);
	else
		bell = memory;
	return r;
}

int
gpc_page_userfault_start(gpc_page_userfault_report *reports, bool *in_kernel_p)
{
	int r;

	page = (uint64_t)sysconf(_SC_PAGESIZE);
	descriptor = gp_fd_away(gp_userfault_open(in_kernel_p));
	if (descriptor < 0)
		return descriptor;
	gp_own_fd_mark(descriptor);
	report = reports;
	r = bell_create();
	if (r == 0)
		r = reader_start();
	if (r) {
		gp_own_fd_close(descriptor);
		descriptor = -1;
	}
	return r;
}

/* Orders. */

static int
order_give(struct order *order)
{
	int r;

	if (gp_own_fd_is(descriptor)) {
		r = order_run(order);
		/* Closed meanwhile, or another file by now. */
		if (r != -EBADF && r != -ENOTTY)
			return r;
	}
	(void)pthread_mutex_lock(&order_lock);
	atomic_store(&order_given, order);
	/* Again where the page was still mapped, or a handler of a signal interrupted the wait. */
	while (!atomic_load(&order->is_done)) {
		(void)*bell;
		(void)madvise((void *)(uintptr_t)bell, page, MADV_DONTNEED);
	}
	(void)pthread_mutex_unlock(&order_lock);
	return order->result;
}

int
gpc_page_userfault_register(uint64_t base, uint64_t size)
{
	struct order order = { .kind = ORDER_REGISTER, .base = base, .size = size };

	return order_give(&order);
}

int
gpc_page_userfault_unregister(uint64_t base, uint64_t size)
{
	struct order order = { .kind = ORDER_UNREGISTER, .base = base, .size = size };

	return order_give(&order);
}

int
gpc_page_userfault_map(uint64_t base, uint64_t size)
{
	struct order order = { .kind = ORDER_MAP, .base = base, .size = size };

	return order_give(&order);
}

int
gpc_page_userfault_map_protected(uint64_t base, uint64_t size, const void *bytes)
{
	struct order order = {
		.kind = ORDER_MAP_PROTECTED, .base = base, .size = size, .bytes = bytes
	};

	return order_give(&order);
}

int
gpc_page_userfault_protect(uint64_t base, uint64_t size, bool is_writable)
{
	struct order order = {
		.kind = ORDER_PROTECT, .base = base, .size = size, .is_writable = is_writable
	};

	return order_give(&order);
}

/* Refusals. */

static void
page_set(uint64_t address, int protection)
{
	(void)mprotect((void *)(uintptr_t)address, page, protection);
}

void
gpc_page_userfault_refuse(uint64_t address, bool by_reader)
{
	struct order order = { .kind = ORDER_WAKE, .base = address & ~(page - 1), .size = page };

	page_set(order.base, PROT_NONE);
	for (int i = 0; i < REFUSED_MAX; i++) {
		uint64_t expected = 0;

		if (atomic_compare_exchange_strong(&refused[i], &expected, order.base)) {
			atomic_fetch_add(&refused_count, 1);
			break;
		}
	}
	(void)(by_reader ? order_run(&order) : order_give(&order));
}

bool
gpc_page_userfault_has_refused(void)
{
	return atomic_load(&refused_count) != 0;
}

void
gpc_page_userfault_restore(void)
{
	for (int i = 0; i < REFUSED_MAX; i++) {
		uint64_t address = atomic_exchange(&refused[i], 0);

		if (!address)
			continue;
		page_set(address, PROT_READ | PROT_WRITE);
		atomic_fetch_sub(&refused_count, 1);
	}
}

void
gpc_page_userfault_drop_refused(uint64_t base, uint64_t size)
{
	for (int i = 0; i < REFUSED_MAX; i++) {
		uint64_t address = atomic_load(&refused[i]);

		if (address && address - base < size &&
		    atomic_compare_exchange_strong(&refused[i], &address, 0))
			atomic_fetch_sub(&refused_count, 1);
	}
}

void
gpc_page_userfault_forked(void)
{
	if (descriptor >= 0)
		gp_own_fd_close(descriptor);
	descriptor = -1;
}
