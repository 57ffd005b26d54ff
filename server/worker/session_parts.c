/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session_parts.h"

#include "server/worker/backlog.h"
#include "server/worker/copy/copy.h"
#include "server/worker/graph/graph.h"
#include "server/worker/image/image.h"
#include "server/worker/memory/array.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/stream.h"

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
