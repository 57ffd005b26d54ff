/* SPDX-License-Identifier: Apache-2.0 */
#include "client/code/known_images.h"

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
	struct gp_image_info *info;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known *images; /* utlist */

static void
add(const struct gpc_session *session, const Gpupool__KnownImage *image)
{
	struct known *known = calloc(1, sizeof(*known));

	if (!known || image->sha256.len != sizeof(known->sha256) ||
	    gp_image_info_decode(&known->info,
				 (struct gp_bytes){ image->info.data, image->info.len }) != 0) {
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

bool
gpc_known_images_use(const struct gpc_device *device, const uint8_t sha256[GPC_SHA256_SIZE],
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
	*info_p = known->info;
	free(known);
	return true;
}
