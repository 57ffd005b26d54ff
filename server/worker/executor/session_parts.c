/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/executor/session_parts.h"

#include "server/worker/array/array.h"
#include "server/worker/copy/copy.h"
#include "server/worker/graph/graph_exec.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream_ops/deferred_queue.h"

#include <stddef.h>

/* destroy() is called after create() has failed, too. */
static const struct {
	int (*create)(struct gpd_session *session);
	void (*destroy)(struct gpd_session *session);
} parts[] = {
	{ gpd_stream_session_create, gpd_stream_session_destroy },
	{ gpd_memory_create, gpd_memory_destroy },
	{ gpd_array_session_create, gpd_array_session_destroy },
	{ gpd_copy_session_create, gpd_copy_session_destroy },
	{ gpd_module_session_create, gpd_module_session_destroy },
	{ gpd_graph_session_create, gpd_graph_session_destroy },
	{ gpd_stream_ops_session_create, gpd_stream_ops_session_destroy },
};

#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

int
gpd_session_parts_create(struct gpd_session *session)
{
	for (size_t i = 0; i < PART_COUNT; i++) {
		int r = parts[i].create(session);

		if (r) {
			gpd_session_parts_destroy(session);
			return r;
		}
	}
	return 0;
}

void
gpd_session_parts_destroy(struct gpd_session *session)
{
	for (size_t i = PART_COUNT; i-- > 0;)
		parts[i].destroy(session);
}
