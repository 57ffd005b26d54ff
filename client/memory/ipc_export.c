/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/ipc_export.h"

#include "client/context/context.h"
#include "client/session/session.h"
#include "gpc_calls.h"

void
gpc_ipc_export_withdraw(struct gpc_ipc_export *export)
{
	if (export) {
		const struct gp_args_gpUnshare args = { .share = export->handle.id };

		(void)gpc_post_gpUnshare(export->context->device->primary, &args);
		gpc_handle_remove(&export->handle);
	}
}

bool
gpc_ipc_handle_is_valid(const struct gp_ipc_handle *ipc_handle, enum gp_ipc_kind kind,
			const struct gpc_session_facts *facts)
{
	return gpc_ipc_handle_is_of_kind(ipc_handle, kind) && ipc_handle->mapping > 0 &&
	       ipc_handle->mapping % facts->granularity == 0 &&
	       ipc_handle->mapping <= facts->window_size &&
	       ipc_handle->offset < ipc_handle->mapping && ipc_handle->size > 0 &&
	       ipc_handle->size <= ipc_handle->mapping - ipc_handle->offset;
}
