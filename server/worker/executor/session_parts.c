/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/executor/session_parts.h"

#include "server/worker/array/array.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane.h"
#include "server/worker/copy/staging.h"
#include "server/worker/graph/graph_exec.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream_ops/deferred_queue.h"

#include <errno.h>
#include <stdlib.h>

struct parts {
	struct gpd_stream_session streams; /* first: session->streams is also the allocation */
	struct gpd_array_session arrays;
	struct gpd_copy_session copies;
	struct gpd_module_session modules;
	struct gpd_graph_session graphs;
	struct gpd_stream_ops_session stream_ops;
};

int
gpd_session_parts_create(struct gpd_session *session)
{
	struct parts *parts = calloc(1, sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	session->streams = &parts->streams;
	session->arrays = &parts->arrays;
	session->copies = &parts->copies;
	session->modules = &parts->modules;
	session->graphs = &parts->graphs;
	session->stream_ops = &parts->stream_ops;
	if (gpd_memory_create(session) || gpd_staging_create(session) ||
	    gpd_lanes_create(session)) {
		gpd_session_parts_destroy(session);
		return -ENOMEM;
	}
	gpd_arrays_register(session);
	return 0;
}

void
gpd_session_parts_destroy(struct gpd_session *session)
{
	gpd_lanes_destroy(session);
	gpd_staging_destroy(session);
	gpd_memory_destroy(session);
	free(session->streams);
}
