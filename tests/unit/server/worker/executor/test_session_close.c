/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the parts of a session are closed. */
#include "server/worker/array/array.h"
#include "server/worker/array/texture.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane.h"
#include "server/worker/device/driver.h"
#include "server/worker/executor/executor.h"
#include "server/worker/host/coherence_fetch.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream/stream_depth.h"
#include "server/worker/stream_ops/host_function.h"
#include "tests/test.h"

typedef void close_func(struct gpd_session *session);

/* The first place of the part. */
static size_t
place_of(close_func *close)
{
	size_t i = 0;

	while (i < gpd_closing_part_count && gpd_closing_parts[i].close != close)
		i++;
	assert_true(i < gpd_closing_part_count);
	return i;
}

UNIT_TEST(phases_come_one_after_another)
{
	assert_int_equal(gpd_closing_parts[0].phase, GPD_CLOSING_STOP);
	for (size_t i = 1; i < gpd_closing_part_count; i++)
		assert_in_range(gpd_closing_parts[i].phase - gpd_closing_parts[i - 1].phase, 0, 1);
	assert_int_equal(gpd_closing_parts[gpd_closing_part_count - 1].phase, GPD_CLOSING_REPORT);
}

/* No function that runs later uses what is freed here. */
UNIT_TEST(what_others_use_is_closed_after_them)
{
	static const struct {
		close_func *user, *used;
	} pairs[] = {
		/* Markers of copies, images and lanes are called by the responder. */
		{ gpd_lanes_stop, gpd_wait_stop },
		{ gpd_wait_stop, gpd_lanes_destroy },
		{ gpd_wait_stop, gpd_copy_destroy_all },
		{ gpd_wait_stop, gpd_image_destroy_all },
		/* Objects made of arrays, and what lies in the session's memory. */
		{ gpd_textures_destroy, gpd_arrays_destroy },
		{ gpd_arrays_destroy, gpd_memory_unmap_all },
		{ gpd_image_destroy_all, gpd_memory_unmap_all },
		/* Streams of the driver, and their places among the depths. */
		{ gpd_host_functions_destroy, gpd_stream_destroy_all },
		{ gpd_wait_stop, gpd_stream_destroy_all },
		{ gpd_stream_destroy_all, gpd_depth_free },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		assert_true(place_of(pairs[i].user) < place_of(pairs[i].used));
}

static unsigned int queries;

static CUresult
query_stream(CUstream stream)
{
	return ++queries < 3 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* All work that the client knows is done, but the driver has not written the last markers. */
UNIT_TEST(an_idle_streams_markers_are_awaited_before_their_page_is_released)
{
	struct gpd_stream stream = { .work = 1, .done = 1, .waits = 2 };
	struct gpd_stream_session streams = { .list = &stream };
	struct gpd_session session = { .streams = &streams };
	size_t await = place_of(gpd_host_watch_stop) - 1;

	gpd_driver.cuStreamQuery = query_stream;
	assert_true(gpd_stream_is_idle(&stream));
	assert_int_equal(gpd_closing_parts[await].phase, GPD_CLOSING_AWAIT);
	assert_true(await < place_of(gpd_wait_stop));
	gpd_closing_parts[await].close(&session);
	assert_int_equal(queries, 3);
}

UNIT_TEST_MAIN(NULL, NULL)
