/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/context_parts.h"

#include "client/api/green_context.h"
#include "client/api/peer_api.h"
#include "client/array/array.h"
#include "client/array/texture.h"
#include "client/context/context.h"
#include "client/context/object.h"
#include "client/graph/capture.h"
#include "client/host/host_block.h"
#include "client/managed/managed_variable.h"
#include "client/memory/globals.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/memory.h"
#include "client/memory/pool.h"
#include "client/module/module.h"
#include "client/module/texture_reference.h"
#include "client/stream/event.h"
#include "client/stream/stream.h"
#include "client/stream/sync.h"

/* The callbacks run in this order: modules are unloaded before the objects that their kernels use,
 * and streams are destroyed before the memory that is used in their order. */
static const struct gpc_context_part parts[] = {
	{ .leave = gpc_capture_drop_context },
	{ .leave = gpc_sync_implicitly },
	{ .leave = gpc_green_context_destroy_all },
	{ .leave = gpc_peer_drop_context },
	{ .unload = gpc_managed_variable_drop_context },
	{ .unload = gpc_module_drop_context },
	{ .unload = gpc_texture_reference_drop_context },
	{ .unload = gpc_texture_drop_context },
	{ .unload = gpc_array_drop_context },
	{ .unload = gpc_image_drop_context },
	{ .unload = gpc_ipc_memory_drop_context },
	{ .unload = gpc_pool_drop_context },
	{ .drop_context = gpc_objects_drop_context },
	{ .drop_context = gpc_event_drop_context },
	{ .prepare = gpc_stream_prepare_context,
	  .created = gpc_stream_context_made,
	  .drop_context = gpc_stream_drop_context },
	{ .drop_context = gpc_host_block_drop_context },
	{ .drop_context = gpc_globals_drop_context },
	{ .prepare = gpc_memory_prepare_context,
	  .created = gpc_memory_context_made,
	  .drop_context = gpc_memory_drop_context },
};

void
gpc_context_parts_set(void)
{
	gpc_context_set_parts(parts, sizeof(parts) / sizeof(parts[0]));
}
