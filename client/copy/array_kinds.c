/* SPDX-License-Identifier: Apache-2.0 */
#include "client/copy/array_kinds.h"

#include <pthread.h>
#include <string.h>

/* A program has few; more are asked for each time. */
#define KINDS_MAX 64
/* What all GPUs have of width and height; and of depth, or of width and height of what has depth.
 */
#define SIDE_MAX 16384
#define DEPTH_MAX 2046

struct kind {
	const struct gpc_device *device;
	uint32_t format, channels, flags;
	bool has_height, has_depth, has_levels;
};

static struct {
	pthread_mutex_t lock;
	unsigned int count;
	struct kind all[KINDS_MAX];
} kinds = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct kind
kind_of(const struct gpc_device *device, const struct gp_array_shape *shape)
{
	struct kind kind;

	/* Compared as bytes: the padding, too. */
	memset(&kind, 0, sizeof(kind));
	kind.device = device;
	kind.format = shape->format;
	kind.channels = shape->channels;
	kind.flags = shape->flags;
	kind.has_height = shape->height > 0;
	kind.has_depth = shape->depth > 0;
	kind.has_levels = shape->levels > 0;
	return kind;
}

static bool
is_ordinary(const struct gp_array_shape *shape)
{
	const bool layers = shape->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	const uint64_t side = shape->depth && !layers ? DEPTH_MAX : SIDE_MAX;

	return shape->width <= side && shape->height <= side && shape->depth <= DEPTH_MAX;
}

static bool
is_known(const struct kind *kind)
{
	for (unsigned int i = 0; i < kinds.count; i++) {
		if (memcmp(&kinds.all[i], kind, sizeof(*kind)) == 0)
			return true;
	}
	return false;
}

bool
gpc_array_kinds_have(const struct gpc_device *device, const struct gp_array_shape *shape)
{
	const struct kind kind = kind_of(device, shape);
	bool known;

	if (!is_ordinary(shape))
		return false;
	(void)pthread_mutex_lock(&kinds.lock);
	known = is_known(&kind);
	(void)pthread_mutex_unlock(&kinds.lock);
	return known;
}

void
gpc_array_kinds_learn(const struct gpc_device *device, const struct gp_array_shape *shape)
{
	const struct kind kind = kind_of(device, shape);

	(void)pthread_mutex_lock(&kinds.lock);
	if (kinds.count < KINDS_MAX && !is_known(&kind))
		kinds.all[kinds.count++] = kind;
	(void)pthread_mutex_unlock(&kinds.lock);
}
