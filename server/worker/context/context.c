/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/context/context.h"

#include "server/worker/device/device.h"
#include "server/worker/session/session.h"

#include <stdlib.h>

struct gpd_context *
gpd_context_get(const struct gpd_session *session, uint32_t id)
{
	return gpd_handle_get(&session->handles, GPD_KIND_CONTEXT, id);
}

int
gpd_context_device(const struct gpd_session *session, uint32_t id)
{
	const struct gpd_context *context = gpd_context_get(session, id);

	int first = context ? -1 : gpd_account_get_first_device(&session->account);

	if (context)
		return context->device;
	return first < 0 ? 0 : first;
}

CUresult
gpd_context_enter(const struct gpd_session *session, uint32_t id)
{
	return gpd_device_enter(gpd_context_device(session, id));
}

void
gpd_green_unref(struct gpd_green *green)
{
	while (green && --green->refs == 0) {
		struct gpd_green *source = green->source;

		gpd_partition_unref(green->partition);
		free(green);
		green = source;
	}
}

struct gpd_partition *
gpd_green_partition(struct gpd_session *session, struct gpd_green *green, int device)
{
	struct gpd_partition *base, *fresh;

	if (!green)
		return gpd_partition_current(&session->shares, device);
	base = gpd_green_partition(session, green->source, device);
	if (gpd_partition_has_base(green->partition, base)) {
		gpd_partition_unref(base);
		return gpd_partition_acquire(green->partition);
	}
	/* Once created, the part must remain usable when the share changes, hence the lenient
	 * split. */
	fresh = gpd_partition_part(device, base, &green->split, green->partition != NULL);
	if (fresh) {
		gpd_partition_unref(green->partition);
		green->partition = fresh;
	}
	return gpd_partition_acquire(green->partition);
}

void
gpd_context_free(struct gpd_session *session, struct gpd_context *context)
{
	gpd_green_unref(context->green);
	gpd_handle_remove(&session->handles, &context->handle);
	free(context);
}
