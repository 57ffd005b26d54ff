/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/stream/stream_depth.h"

#include "base/clock.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

#include <stdatomic.h>

/* Operations that a stream may have: DEPTH_MAX while there are at most half as many streams as
 * hardware queues, at least DEPTH_MIN. The driver accepts 1024 for each queue, and streams may
 * share one. */
#define DEPTH_MAX 768
#define DEPTH_MIN 64
/* Part of the depth after which the stream is marked. A marker makes the GPU wait for the kernels
 * before it. */
#define STRIDE_PART 8
/* How long the executor waits for room. */
#define SLOW_NS UINT64_C(20000000)
#define NAP_NS 20000
#define NAP_LONG_NS 200000
#define LONG_NS UINT64_C(2000000)

uint64_t gpd_depth_timeout_ns = UINT64_C(1000000000);

/* Number of streams of all sessions. */
static _Atomic uint32_t streams;

static uint32_t
find_slot(struct gpd_depths *depths)
{
	for (uint32_t i = 0; i < GPD_MARKER_PAGE_SLOTS; i++) {
		if (!depths->used[i])
			return i + 1;
	}
	return 0;
}

static void
depth_reset(struct gpd_depth *depth)
{
	depth->given = depth->marked = depth->idle = depth->opened = 0;
	depth->full = false;
	depth->stride = DEPTH_MIN;
}

void
gpd_depth_open(struct gpd_session *session, struct gpd_stream *stream)
{
	struct gpd_depths *depths = &session->streams->depths;
	struct gpd_depth *depth = &stream->depth;

	depth_reset(depth);
	if (!depths->page)
		depths->page = gpd_marker_page_acquire();
	if (!depths->page)
		return;
	depth->slot = find_slot(depths);
	if (!depth->slot)
		return;
	depths->used[depth->slot - 1] = true;
	__atomic_store_n(&depths->page->host[depth->slot - 1], 0, __ATOMIC_RELEASE);
	atomic_fetch_add_explicit(&streams, 1, memory_order_relaxed);
}

void
gpd_depth_close(struct gpd_session *session, struct gpd_stream *stream)
{
	struct gpd_depth *depth = &stream->depth;

	if (!depth->slot)
		return;
	session->streams->depths.used[depth->slot - 1] = false;
	depth->slot = 0;
	atomic_fetch_sub_explicit(&streams, 1, memory_order_relaxed);
}

void
gpd_depth_free(struct gpd_session *session)
{
	gpd_marker_page_release(session->streams->depths.page);
	session->streams->depths.page = NULL;
}

/* All streams share the queues. */
static uint32_t
depth_get_limit(void)
{
	uint32_t count = atomic_load_explicit(&streams, memory_order_relaxed);
	uint32_t alone = (uint32_t)(gpd_devices.connections + 1) / 2;
	uint32_t depth = count <= alone ? DEPTH_MAX : DEPTH_MAX * alone / count;

	return depth < DEPTH_MIN ? DEPTH_MIN : depth;
}

static bool
wait_is_cancelled(const struct gpd_session *session)
{
	return atomic_load(&session->closing) || atomic_load(&gpd_devices.lost);
}

/* Written by the GPU. */
static uint32_t
read_done(const volatile uint32_t *done)
{
	return __atomic_load_n(done, __ATOMIC_ACQUIRE);
}

/* Returns the number of operations that are not known to be done. The stream may have been idle so
 * often since its last marker that the marker's value is of any age. */
static uint32_t
depth_get_open(const struct gpd_depth *depth, const volatile uint32_t *done)
{
	uint32_t since_mark = depth->given - read_done(done),
		 since_idle = depth->given - depth->idle;

	return since_mark < since_idle ? since_mark : since_idle;
}

/* Waits briefly. Returns whether fewer than `most` operations are left, or the session is
 * closing. */
static bool
wait_for_room(const struct gpd_session *session, const struct gpd_depth *depth,
	      const volatile uint32_t *done, uint32_t most)
{
	uint64_t begun = gp_now_ns(), now = begun;

	while (depth_get_open(depth, done) >= most && !wait_is_cancelled(session)) {
		if (now - begun > SLOW_NS)
			return false;
		gp_sleep_ns(now - begun < LONG_NS ? NAP_NS : NAP_LONG_NS);
		now = gp_now_ns();
	}
	return true;
}

/* false: no marker was written. */
static bool
write_mark(struct gpd_session *session, struct gpd_stream *stream)
{
	const struct gpd_marker_page *page = session->streams->depths.page;
	uint32_t slot = stream->depth.slot - 1, value = stream->depth.given - 1;
	CUdeviceptr to = page->device + 4 * slot;

	if (!session->issue.pending || !stream->launcher)
		return gpd_driver.cuStreamWriteValue32_v2(stream->driver, to, value, 0) ==
		       CUDA_SUCCESS;
	gpd_issue_write(&session->issue, stream->launcher, stream->device, stream->driver, to,
			&page->host[slot], value);
	return true;
}

/* If the stream has just been slow, waiting would only delay other streams. */
static bool
is_slow(const struct gpd_depth *depth, uint32_t most)
{
	return depth->opened && depth->given - depth->opened <= most / 2;
}

void
gpd_depth_set_idle(struct gpd_depth *depth)
{
	depth->marked = depth->idle = depth->given;
}

void
gpd_depth_mark(struct gpd_session *session, struct gpd_stream *stream)
{
	struct gpd_depth *depth = &stream->depth;
	const struct gpd_marker_page *page = session->streams->depths.page;
	const volatile uint32_t *done;
	uint32_t most = depth_get_limit();

	/* The marker covers the operations before the next one. */
	depth->marked = depth->given;
	if (!depth->slot || !write_mark(session, stream))
		return;
	depth->stride = most / STRIDE_PART;
	done = &page->host[depth->slot - 1];
	if (depth_get_open(depth, done) < most || depth->full)
		return;
	if (!is_slow(depth, most) && wait_for_room(session, depth, done, most))
		return;
	depth->full = session->streams->depths.filled = true;
	depth->seen = read_done(done);
	depth->seen_ns = gp_now_ns();
}

bool
gpd_depth_poll(const struct gpd_session *session, struct gpd_stream *stream)
{
	struct gpd_depth *depth = &stream->depth;
	const volatile uint32_t *slot = &session->streams->depths.page->host[depth->slot - 1];
	uint32_t most = depth_get_limit(), done = read_done(slot), limit = most - most / 4;
	uint64_t now = gp_now_ns();

	if (done != depth->seen) {
		depth->seen = done;
		depth->seen_ns = now;
	} else if (most < DEPTH_MAX && now - depth->seen_ns > gpd_depth_timeout_ns) {
		limit = DEPTH_MAX - 1;
	}
	if (depth_get_open(depth, slot) > limit && !wait_is_cancelled(session))
		return false;
	depth->full = false;
	depth->opened = depth->given ? depth->given : 1;
	return true;
}
