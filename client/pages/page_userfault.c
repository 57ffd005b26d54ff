/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pages/page_userfault.h"

#include "base/lock.h"
#include "base/thread.h"
#include "base/userfault.h"
#include "transport/descriptor.h"
#include "transport/private_fd.h"

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

/* Maximum number of refused pages that can be restored. */
#define REFUSED_MAX 16

enum command_kind {
	COMMAND_REGISTER,
	COMMAND_UNREGISTER,
	COMMAND_MAP,
	COMMAND_MAP_PROTECTED,
	COMMAND_PROTECT,
	COMMAND_WAKE,
};

/* An operation on the descriptor. */
struct command {
	enum command_kind kind;
	uint64_t base, size;
	bool is_writable;
	const void *bytes;
	int result;
	atomic_bool is_done;
};

static gpc_page_userfault_report *report;
static int descriptor = -1; /* the same number in both descriptor tables */
static uint64_t page;

/*
 * Command for the reader: the requesting thread touches the doorbell, a page that is registered but
 * not mapped, and thereby waits for the reader.
 */
static pthread_mutex_t command_lock = PTHREAD_MUTEX_INITIALIZER;
static struct command *_Atomic command_posted;
static const volatile uint8_t *doorbell;

static atomic_uint_fast64_t refused[REFUSED_MAX]; /* 0: none */
static atomic_uint refused_count;

/* 1: the reader is running; or -errno. */
static atomic_int reader_state;

static int
command_run(const struct command *command)
{
	switch (command->kind) {
	case COMMAND_REGISTER:
		return gp_userfault_register(descriptor, command->base, command->size);
	case COMMAND_UNREGISTER:
		return gp_userfault_unregister(descriptor, command->base, command->size);
	case COMMAND_MAP:
		return gp_userfault_map(descriptor, command->base, command->size);
	case COMMAND_MAP_PROTECTED:
		return gp_userfault_map_protected(descriptor, command->base, command->size,
						  command->bytes);
	case COMMAND_PROTECT:
		return gp_userfault_protect(descriptor, command->base, command->size,
					    command->is_writable);
	case COMMAND_WAKE:
		return gp_userfault_wake(descriptor, command->base, command->size);
	}
	return -EINVAL;
}

/* Reader. */

static void
reader_serve_doorbell(void)
{
	struct command *command = atomic_exchange(&command_posted, NULL);

	if (command) {
		command->result = command_run(command);
		atomic_store(&command->is_done, true);
	}
	(void)gp_userfault_map_zeros(descriptor, (uintptr_t)doorbell, page);
	(void)gp_userfault_wake(descriptor, (uintptr_t)doorbell, page);
}

static void
reader_set_state(int state)
{
	atomic_store(&reader_state, state);
	(void)syscall(SYS_futex, &reader_state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Creates a descriptor table that contains only this descriptor. */
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
			if (events[i].address == (uintptr_t)doorbell)
				reader_serve_doorbell();
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
doorbell_create(void)
{
	void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (memory == MAP_FAILED)
		return -errno;
	r = gp_userfault_register_missing(descriptor, (uintptr_t)memory, page);
	if (r)
		(void)munmap(memory, page);
	else
		doorbell = memory;
	return r;
}

int
gpc_page_userfault_start(gpc_page_userfault_report *reports, bool *in_kernel_p)
{
	int r;

	page = (uint64_t)sysconf(_SC_PAGESIZE);
	descriptor = gp_fd_move_above_stdio(gp_userfault_open(in_kernel_p));
	if (descriptor < 0)
		return descriptor;
	gp_fd_guard_mark(descriptor);
	report = reports;
	r = doorbell_create();
	if (r == 0)
		r = reader_start();
	if (r) {
		gp_fd_guard_close(descriptor);
		descriptor = -1;
	}
	return r;
}

/* Commands. */

static int
command_execute(struct command *command)
{
	int r;

	if (gp_fd_guard_is_marked(descriptor)) {
		r = command_run(command);
		/* The descriptor was closed in the meantime, or its number now belongs to another
		 * file. */
		if (r != -EBADF && r != -ENOTTY)
			return r;
	}
	(void)pthread_mutex_lock(&command_lock);
	atomic_store(&command_posted, command);
	/* Repeats if the page was still mapped, or if a signal handler interrupted the wait. */
	while (!atomic_load(&command->is_done)) {
		(void)*doorbell;
		(void)madvise((void *)(uintptr_t)doorbell, page, MADV_DONTNEED);
	}
	(void)pthread_mutex_unlock(&command_lock);
	return command->result;
}

int
gpc_page_userfault_register(uint64_t base, uint64_t size)
{
	struct command command = { .kind = COMMAND_REGISTER, .base = base, .size = size };

	return command_execute(&command);
}

int
gpc_page_userfault_unregister(uint64_t base, uint64_t size)
{
	struct command command = { .kind = COMMAND_UNREGISTER, .base = base, .size = size };

	return command_execute(&command);
}

int
gpc_page_userfault_map(uint64_t base, uint64_t size)
{
	struct command command = { .kind = COMMAND_MAP, .base = base, .size = size };

	return command_execute(&command);
}

int
gpc_page_userfault_map_protected(uint64_t base, uint64_t size, const void *bytes)
{
	struct command command = {
		.kind = COMMAND_MAP_PROTECTED, .base = base, .size = size, .bytes = bytes
	};

	return command_execute(&command);
}

int
gpc_page_userfault_protect(uint64_t base, uint64_t size, bool is_writable)
{
	struct command command = {
		.kind = COMMAND_PROTECT, .base = base, .size = size, .is_writable = is_writable
	};

	return command_execute(&command);
}

/* Refused pages. */

static void
page_set(uint64_t address, int protection)
{
	(void)mprotect((void *)(uintptr_t)address, page, protection);
}

void
gpc_page_userfault_refuse(uint64_t address, bool by_reader)
{
	struct command command = { .kind = COMMAND_WAKE,
				   .base = address & ~(page - 1),
				   .size = page };

	page_set(command.base, PROT_NONE);
	for (int i = 0; i < REFUSED_MAX; i++) {
		uint64_t expected = 0;

		if (atomic_compare_exchange_strong(&refused[i], &expected, command.base)) {
			atomic_fetch_add(&refused_count, 1);
			break;
		}
	}
	(void)(by_reader ? command_run(&command) : command_execute(&command));
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
		gp_fd_guard_close(descriptor);
	descriptor = -1;
}
