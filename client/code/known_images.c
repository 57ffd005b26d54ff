/* SPDX-License-Identifier: Apache-2.0 */
#include "client/code/known_images.h"

#include "base/sha256.h"
#include "image/image_list.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Of one Welcome: a daemon tells of fewer. */
#define IMAGES_MAX 256

struct known {
	struct known *next;
	const struct gpc_session *session;
	int device; /* the daemon's ordinal */
	uint8_t sha256[GPC_SHA256_SIZE];
	struct gp_image_info *info; /* NULL: it has this digest */
	uint8_t digest[GP_SHA256_SIZE];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known *images; /* utlist */

static bool
take_info(struct known *known, const Gpupool__KnownImage *image)
{
	if (image->info.len)
		return gp_image_info_decode(&known->info, (struct gp_bytes){ image->info.data,
									     image->info.len }) ==
		       0;
	if (image->digest.len != sizeof(known->digest))
		return false;
	memcpy(known->digest, image->digest.data, sizeof(known->digest));
	return true;
}

static void
add(const struct gpc_session *session, const Gpupool__KnownImage *image)
{
	struct known *known = calloc(1, sizeof(*known));

	if (!known || image->sha256.len != sizeof(known->sha256) || !take_info(known, image)) {
		free(known);
		return;
	}
	known->session = session;
	known->device = image->device;
	memcpy(known->sha256, image->sha256.data, sizeof(known->sha256));
	(void)pthread_mutex_lock(&lock);
	LL_PREPEND(images, known);
	(void)pthread_mutex_unlock(&lock);
}

void
gpc_known_images_take(const struct gpc_session *session, const Gpupool__Welcome *welcome)
{
	Gpupool__KnownImages *all = gpupool__known_images__unpack(NULL, welcome->known_images.len,
								  welcome->known_images.data);

	for (size_t i = 0; all && i < all->n_images && i < IMAGES_MAX; i++)
		add(session, all->images[i]);
	if (all)
		gpupool__known_images__free_unpacked(all, NULL);
}

/* What the daemon would tell: it is used if it is that. */
static bool
read_off(struct known *known, const struct gp_image *view, const struct gp_image_target *target)
{
	uint8_t digest[GP_SHA256_SIZE];
	void *data;
	size_t size;
	bool same;

	if (gp_image_list(view, target, &known->info))
		return false;
	same = gp_image_info_encode(known->info, &data, &size) == 0;
	if (same) {
		gp_sha256(data, size, digest);
		same = memcmp(digest, known->digest, sizeof(digest)) == 0;
		free(data);
	}
	if (!same)
		gp_image_info_destroy(known->info);
	return same;
}

bool
gpc_known_images_use(const struct gpc_device *device, const uint8_t sha256[GPC_SHA256_SIZE],
		     const struct gp_image *view, const struct gp_image_target *target,
		     struct gp_image_info **info_p)
{
	struct known *known;

	(void)pthread_mutex_lock(&lock);
	LL_FOREACH(images, known)
	{
		if (known->session == device->session && known->device == device->remote &&
		    memcmp(known->sha256, sha256, sizeof(known->sha256)) == 0)
			break;
	}
	if (known)
		LL_DELETE(images, known);
	(void)pthread_mutex_unlock(&lock);
	if (!known)
		return false;
	if (!known->info && !read_off(known, view, target)) {
		free(known);
		return false;
	}
	*info_p = known->info;
	free(known);
	return true;
}
