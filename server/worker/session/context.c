/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/context.h"

#include "server/worker/device/device.h"
#include "server/worker/session/session.h"

struct gpd_context *
gpd_context_get(const struct gpd_session *session, uint32_t id)
{
	return (struct gpd_context *)gpd_handle_get(&session->handles, GPD_KIND_CONTEXT, id);
}

CUresult
gpd_context_enter(const struct gpd_session *session, uint32_t id)
{
	const struct gpd_context *context = gpd_context_get(session, id);

	return gpd_device_enter(context ? context->device : 0);
}
