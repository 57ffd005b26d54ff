/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/copy/listed_copy.h"

#include "base/lock.h"
#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/worker/copy/staging.h"
#include "server/worker/session/session.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void
gpd_listed_init(struct gpd_listed *listed)
{
	(void)pthread_mutex_init(&listed->lock, NULL);
	listed->parts = NULL;
}

void
gpd_listed_fini(struct gpd_listed *listed)
{
	struct gpd_listed_part *part, *next;

	DL_FOREACH_SAFE(listed->parts, part, next)
	free(part);
	(void)pthread_mutex_destroy(&listed->lock);
}

bool
gpd_listed_add(struct gpd_listed *listed, const struct gpd_listed_part *part)
{
	struct gpd_listed_part *added = malloc(sizeof(*added));

	if (!added)
		return false;
	*added = *part;
	pthread_mutex_lock(&listed->lock);
	DL_APPEND(listed->parts, added);
	pthread_mutex_unlock(&listed->lock);
	return true;
}

void
gpd_listed_drop(struct gpd_listed *listed, const struct gpd_slot *slot)
{
	struct gpd_listed_part *part, *next;

	pthread_mutex_lock(&listed->lock);
	DL_FOREACH_SAFE(listed->parts, part, next)
	{
		if (part->slot != slot)
			continue;
		DL_DELETE(listed->parts, part);
		free(part);
	}
	pthread_mutex_unlock(&listed->lock);
}

/* offset + size does not overflow; neither does part->offset + part->size, because both count bytes
 * that were received. */
static void
part_replace(const struct gpd_listed_part *part, uint64_t offset, const uint8_t *bytes, size_t size)
{
	uint64_t start = offset > part->offset ? offset : part->offset;
	uint64_t end = offset + size < part->offset + part->size ? offset + size
								 : part->offset + part->size;

	if (start < end)
		memcpy(part->memory + (start - part->offset), bytes + (start - offset),
		       end - start);
}

void
gpd_listed_replace(struct gpd_listed *listed, uint32_t number, uint64_t offset, const void *bytes,
		   size_t size)
{
	const struct gpd_listed_part *part;

	pthread_mutex_lock(&listed->lock);
	DL_FOREACH(listed->parts, part)
	{
		if (part->number == number)
			part_replace(part, offset, bytes, size);
	}
	pthread_mutex_unlock(&listed->lock);
}

CUresult
gpd_gpCopyReplace(struct gpd_session *session, const struct gp_args_gpCopyReplace *args)
{
	uint64_t end;

	if (args->copy >= GP_COPY_NUMBERS || args->data.size == 0 ||
	    args->data.size > GP_REPLACE_MAX ||
	    __builtin_add_overflow(args->offset, args->data.size, &end)) {
		gpd_session_violation(session, "it replaces %lu bytes at %lu of copy %u",
				      (unsigned long)args->data.size, (unsigned long)args->offset,
				      (unsigned int)args->copy);
		return CUDA_ERROR_INVALID_VALUE;
	}
	gpd_staging_replace(session, args->copy, args->offset, args->data.data, args->data.size);
	return CUDA_SUCCESS;
}
