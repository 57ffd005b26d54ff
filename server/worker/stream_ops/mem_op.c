/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/stream_ops/mem_op.h"

#include "base/clock.h"
#include "base/thread.h"
#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/marker_page.h"
#include "server/worker/device/partition.h"
#include "server/worker/host/host_space.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream_ops/deferred_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <utlist.h>

/* Maximum number of words per poll. The page begins with the marker that follows them. */
#define POLL_VALUES 64
_Static_assert((POLL_VALUES + 1) * sizeof(uint64_t) <= GPD_MARKER_PAGE_SLOTS * sizeof(uint32_t),
	       "a page has room for a scan");
/* How long the executor polls without a pause. */
#define SPIN_NS 60000
#define COPY_NAP_NS 4000

struct wait_value {
	struct wait_value *prev, *next; /* sorted by device */
	struct gpd_deferred_entry *entry;
	_Atomic bool reached;   /* the stream's earlier work is done; set by the responder */
	uint32_t publish;       /* met; ends with the gpHostPublish of this number; 0: not met */
	unsigned int poll_slot; /* index of its value in the current poll; 0: none */
	int device;
	unsigned int size, condition;
	uint64_t address, value;
};

struct gpd_wait_values {
	struct wait_value *all;  /* utlist */
	struct wait_value *next; /* first one of the next poll; NULL: start again */
	struct gpd_marker_page *page;
	uint32_t poll_marker; /* marker of the last poll */
	bool polling;         /* a poll is in progress */
	uint32_t publish;     /* number requested last */
	uint32_t published;   /* number received last */
	uint64_t changed_ns;  /* when a wait started or ended */
	uint64_t poll_at_ns;  /* time of the next poll */
};

/* Streams without any other work, so that a copy there does not wait for a kernel. */
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static CUstream streams[GPD_DEVICES_MAX];

/* Makes the device current. */
static CUresult
poll_stream_get(int device, CUstream *stream_p)
{
	CUresult result = gpd_device_enter(device);

	pthread_mutex_lock(&streams_lock);
	if (result == CUDA_SUCCESS && !streams[device])
		result = gpd_partition_stream(NULL, gpd_devices.all[device].priority_greatest, NULL,
					      &streams[device]);
	*stream_p = streams[device];
	pthread_mutex_unlock(&streams_lock);
	return result;
}

static struct gpd_wait_values *
wait_values_get(struct gpd_session *session)
{
	struct gpd_wait_values *wait_values = session->stream_ops->wait_values;

	if (wait_values)
		return wait_values;
	wait_values = calloc(1, sizeof(*wait_values));
	if (!wait_values)
		return NULL;
	wait_values->page = gpd_marker_page_acquire();
	if (!wait_values->page) {
		free(wait_values);
		return NULL;
	}
	/* The pauses are shorter than the kernel's default timer slack of 50 us. */
	(void)prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	session->stream_ops->wait_values = wait_values;
	return wait_values;
}

static int
wait_value_compare_device(const struct wait_value *a, const struct wait_value *b)
{
	return a->device - b->device;
}

/* Runs in the responder. */
static void
wait_value_reached(struct gpd_session *session, void *arg, CUresult result)
{
	struct wait_value *wait_value = arg;

	if (result == CUDA_SUCCESS)
		atomic_store_explicit(&wait_value->reached, true, memory_order_release);
}

/* Whether the session may access the word. */
static CUresult
wait_value_check_address(struct gpd_session *session, uint64_t address, unsigned int size)
{
	return (size == 4 || size == 8) && address % size == 0 &&
			       gpd_memory_accessible(session, address, size)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpd_gpStreamWrite(struct gpd_session *session, const struct gp_args_gpStreamWrite *args)
{
	struct gpd_stream *stream;
	CUresult result = wait_value_check_address(session, args->address, args->size);

	if (result == CUDA_SUCCESS)
		result = gpd_stream_begin(session, args->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (args->size == 8)
		return gpd_driver.cuStreamWriteValue64_v2(
			stream->driver, args->address, args->value, CU_STREAM_WRITE_VALUE_DEFAULT);
	return gpd_driver.cuStreamWriteValue32_v2(stream->driver, args->address,
						  (cuuint32_t)args->value,
						  CU_STREAM_WRITE_VALUE_DEFAULT);
}

/* On success it owns the record that is being carried out. */
static CUresult
wait_value_enqueue(struct gpd_session *session, const struct gp_args_gpStreamWait *args)
{
	struct gpd_wait_values *wait_values = wait_values_get(session);
	struct wait_value *wait_value = wait_values ? calloc(1, sizeof(*wait_value)) : NULL;
	struct gpd_stream *stream;
	CUresult result;

	if (!wait_value)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpd_stream_begin(session, args->stream, &stream);
	if (result == CUDA_SUCCESS) {
		*wait_value = (struct wait_value){
			.entry = session->current.entry,
			.device = stream->device,
			.size = args->size,
			.condition = args->condition,
			.address = args->address,
			.value = args->value,
		};
		result = gpd_wait_add(session, stream, wait_value_reached, wait_value);
	}
	if (result != CUDA_SUCCESS) {
		free(wait_value);
		return result;
	}
	session->current.entry = NULL;
	DL_INSERT_INORDER(wait_values->all, wait_value, wait_value_compare_device);
	wait_values->changed_ns = gp_now_ns();
	wait_values->poll_at_ns = 0;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpStreamWait(struct gpd_session *session, const struct gp_args_gpStreamWait *args)
{
	CUresult result = args->condition > CU_STREAM_WAIT_VALUE_NOR
				  ? CUDA_ERROR_INVALID_VALUE
				  : wait_value_check_address(session, args->address, args->size);

	if (result == CUDA_SUCCESS)
		result = wait_value_enqueue(session, args);
	/* Otherwise the client would wait for it forever. */
	if (result != CUDA_SUCCESS)
		(void)gpd_session_send_note(session, GP_NOTE_WAITS, 1, 0);
	return result;
}

CUresult
gpd_gpHostPublish(struct gpd_session *session, const struct gp_args_gpHostPublish *args)
{
	if (args->number && session->stream_ops->wait_values)
		session->stream_ops->wait_values->published = args->number;
	else if (!args->number)
		gpd_host_memory_enable_publish(session);
	return CUDA_SUCCESS;
}

bool
gpd_wait_values_are_pending(const struct gpd_session *session)
{
	return session->stream_ops->wait_values && session->stream_ops->wait_values->all;
}

static struct wait_value *
wait_value_next_reached(struct wait_value *wait_value)
{
	while (wait_value && (wait_value->publish ||
			      !atomic_load_explicit(&wait_value->reached, memory_order_acquire)))
		wait_value = wait_value->next;
	return wait_value;
}

/* Returns the value's slot in the page; the first slot is the marker's. */
static void *
poll_slot_get(const struct gpd_wait_values *wait_values, unsigned int index)
{
	return (void *)((volatile uint64_t *)wait_values->page->host + index);
}

/* Starts a poll: copies words of one device, followed by the marker. */
static CUresult
poll_start(struct gpd_wait_values *wait_values)
{
	struct wait_value *wait_value =
		wait_value_next_reached(wait_values->next ? wait_values->next : wait_values->all);
	int device = wait_value ? wait_value->device : 0;
	CUstream stream;
	CUresult result = wait_value ? poll_stream_get(device, &stream) : CUDA_ERROR_NOT_READY;
	unsigned int count = 0;

	while (wait_value && wait_value->device == device && count < POLL_VALUES &&
	       result == CUDA_SUCCESS) {
		wait_value->poll_slot = ++count;
		result = gpd_driver.cuMemcpyDtoHAsync_v2(poll_slot_get(wait_values, count),
							 wait_value->address, wait_value->size,
							 stream);
		wait_value = wait_value_next_reached(wait_value->next);
	}
	wait_values->next = wait_value;
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamWriteValue32_v2(stream, wait_values->page->device,
							    ++wait_values->poll_marker,
							    CU_STREAM_WRITE_VALUE_DEFAULT);
	wait_values->polling = result == CUDA_SUCCESS;
	return result;
}

static uint64_t
wait_value_read(const struct gpd_wait_values *wait_values, const struct wait_value *wait_value)
{
	const volatile void *at = poll_slot_get(wait_values, wait_value->poll_slot);

	return wait_value->size == 8 ? *(const volatile uint64_t *)at
				     : *(const volatile uint32_t *)at;
}

static bool
wait_value_is_met(const struct wait_value *wait_value, uint64_t now)
{
	const uint64_t mask = wait_value->size == 8 ? UINT64_MAX : UINT32_MAX;
	const uint64_t value = wait_value->value & mask;

	switch (wait_value->condition) {
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & value) != 0;
	case CU_STREAM_WAIT_VALUE_NOR:
		return (~(now | value) & mask) != 0;
	default: /* GEQ, with wraparound */
		return ((now - value) & mask) <= mask / 2;
	}
}

static void
wait_value_remove(struct gpd_session *session, struct wait_value *wait_value)
{
	struct gpd_wait_values *wait_values = session->stream_ops->wait_values;

	if (wait_values->next == wait_value)
		wait_values->next = wait_value->next;
	DL_DELETE(wait_values->all, wait_value);
	gpd_deferred_remove(session, wait_value->entry);
	free(wait_value);
}

/* Returns the next number; 0 is not used. */
static uint32_t
publish_next_number(uint32_t number)
{
	return number == UINT32_MAX ? 1 : number + 1;
}

/* Ends the waits that are met and whose data has arrived. */
static unsigned int
published_complete(struct gpd_session *session)
{
	struct gpd_wait_values *wait_values = session->stream_ops->wait_values;
	struct wait_value *wait_value, *next;
	unsigned int count = 0;

	DL_FOREACH_SAFE(wait_values->all, wait_value, next)
	{
		/* A later number covers the earlier ones. */
		if (wait_value->publish &&
		    (int32_t)(wait_values->published - wait_value->publish) >= 0) {
			wait_value_remove(session, wait_value);
			count++;
		}
	}
	wait_values->published = 0;
	return count;
}

static unsigned int
poll_finish(struct gpd_session *session)
{
	struct gpd_wait_values *wait_values = session->stream_ops->wait_values;
	uint32_t number = publish_next_number(wait_values->publish);
	struct wait_value *wait_value, *next;
	unsigned int count = 0;
	bool publish = false;

	wait_values->polling = false;
	DL_FOREACH_SAFE(wait_values->all, wait_value, next)
	{
		bool met = wait_value->poll_slot &&
			   wait_value_is_met(wait_value, wait_value_read(wait_values, wait_value));

		if (met &&
		    gpd_host_memory_needs_publish(session, wait_value->address, wait_value->size)) {
			wait_value->publish = number;
			wait_value->poll_slot = 0;
			publish = true;
		} else if (met) {
			wait_value_remove(session, wait_value);
			count++;
		} else {
			wait_value->poll_slot = 0;
		}
	}
	if (publish) {
		wait_values->publish = number;
		wait_values->changed_ns = gp_now_ns();
		(void)gpd_session_send_note(session, GP_NOTE_PUBLISH, number, 0);
	}
	return count;
}

/* Returns how long to wait before the next poll. */
static uint64_t
get_pause_ns(const struct gpd_wait_values *wait_values, uint64_t now)
{
	uint64_t waited = now - wait_values->changed_ns;

	return waited < SPIN_NS || wait_values->next ? 0 : gpd_sessions_nap_ns(waited);
}

unsigned int
gpd_wait_values_poll(struct gpd_session *session)
{
	struct gpd_wait_values *wait_values = session->stream_ops->wait_values;
	unsigned int count = 0;
	uint64_t now = gp_now_ns();
	CUresult result;

	if (wait_values->published)
		count = published_complete(session);
	if (wait_values->polling && __atomic_load_n(&wait_values->page->host[0],
						    __ATOMIC_ACQUIRE) == wait_values->poll_marker) {
		count += poll_finish(session);
		if (count)
			wait_values->changed_ns = now;
		wait_values->poll_at_ns = now + get_pause_ns(wait_values, now);
	}
	if (!wait_values->polling && now >= wait_values->poll_at_ns && wait_values->all) {
		result = poll_start(wait_values);
		if (gpd_driver_is_sticky(result))
			gpd_session_poison(session, result);
		if (result != CUDA_SUCCESS)
			wait_values->poll_at_ns =
				now + COPY_NAP_NS + get_pause_ns(wait_values, now);
	}
	if (count)
		(void)gpd_session_send_note(session, GP_NOTE_WAITS, count, 0);
	return count;
}

void
gpd_wait_values_pause(struct gpd_session *session)
{
	const struct gpd_wait_values *wait_values = session->stream_ops->wait_values;
	uint64_t now = gp_now_ns();

	if (wait_values->polling && now - wait_values->changed_ns < SPIN_NS &&
	    gpd_sessions_may_spin())
		gp_cpu_relax();
	else if (wait_values->polling)
		gp_sleep_ns(COPY_NAP_NS);
	else if (now < wait_values->poll_at_ns)
		gp_sleep_ns(wait_values->poll_at_ns - now);
}

void
gpd_wait_values_destroy(struct gpd_session *session)
{
	struct gpd_wait_values *wait_values = session->stream_ops->wait_values;
	struct wait_value *wait_value, *next;

	if (!wait_values)
		return;
	/* The page will be used by another session. */
	while (wait_values->polling && !atomic_load(&gpd_devices.lost) &&
	       __atomic_load_n(&wait_values->page->host[0], __ATOMIC_ACQUIRE) !=
		       wait_values->poll_marker)
		gp_sleep_ns(COPY_NAP_NS);
	gpd_marker_page_release(wait_values->page);
	DL_FOREACH_SAFE(wait_values->all, wait_value, next)
	{
		free(wait_value);
	}
	free(wait_values);
	session->stream_ops->wait_values = NULL;
}
