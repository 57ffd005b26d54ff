/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/module/image_bytes.h"

#include "gpd_calls.h"
#include "image/code_check.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/module/image.h"
#include "server/worker/module/unpacking.h"
#include "server/worker/session/session.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

/* Per session. */
#define IMAGES_MAX 16384
#define RECEIVE_SIZE ((size_t)1 << 20)

CUresult
gpd_image_charge_bytes(struct gpd_session *session, uint64_t size)
{
	const struct gpd_ledger_session *entry = session->account.entry;
	const struct gpd_ledger_tenant *tenant = &session->account.ledger->tenants[entry->tenant];
	const struct gpd_ledger_tenant_line *all = &tenant->devices[GPD_LEDGER_CODE];
	unsigned int images = 0;
	uint32_t at = 0;

	while (gpd_handle_next(&session->handles, GPD_KIND_IMAGE, &at))
		images++;
	if (size <= GP_IMAGE_SIZE_MAX && images < IMAGES_MAX &&
	    gpd_account_charge_code(&session->account, size) == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	gpd_session_log(session, GPD_LOG_WARNING,
			"an image of %" PRIu64 " KiB is refused: it has %u of %" PRIu64
			" KiB, its tenant %" PRIu64 " of %" PRIu64
			" KiB (code-memory); one image may have %" PRIu64 " KiB",
			(size + 1023) >> 10, images,
			atomic_load(&entry->devices[GPD_LEDGER_CODE].memory) >> 10,
			atomic_load(&all->memory) >> 10, atomic_load(&all->memory_max) >> 10,
			(uint64_t)GP_IMAGE_SIZE_MAX >> 10);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static unsigned int
get_attribute(int device, CUdevice_attribute which)
{
	int value = 0;

	(void)gpd_driver.cuDeviceGetAttribute(&value, which, gpd_devices.all[device].device);
	return (unsigned int)value;
}

struct gp_image_target
gpd_image_target(int device)
{
	return (struct gp_image_target){
		.major = get_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
		.minor = get_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
		.software = gpd_driver.software,
	};
}

uint64_t
gpd_image_driver_size(struct gpd_blob *blob, int device)
{
	const struct gp_image_target target = gpd_image_target(device);

	return blob->image ? gp_image_driver_size(blob->image, &target) : 0;
}

/* Hashes the bytes as they arrive. */
static CUresult
image_recv(struct gpd_session *session, uint8_t *bytes, size_t size, uint8_t *sha256)
{
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	bool good = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1;

	for (size_t at = 0; good && at < size; at += RECEIVE_SIZE) {
		size_t part = size - at < RECEIVE_SIZE ? size - at : RECEIVE_SIZE;

		gpd_image_cache_upload_progress(&session->modules->uploader);
		good = !gpd_session_recv_bulk(session, bytes + at, part) &&
		       EVP_DigestUpdate(digest, bytes + at, part) == 1;
	}
	good = good && EVP_DigestFinal_ex(digest, sha256, NULL) == 1;
	EVP_MD_CTX_free(digest);
	return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
image_upload(struct gpd_session *session, const struct gp_args_gpImageLoad *args,
	     struct gpd_blob **blob_p)
{
	uint8_t sha256[EVP_MAX_MD_SIZE];
	void *bytes = gpd_image_bytes_alloc(args->size);
	CUresult result =
		bytes ? image_recv(session, bytes, args->size, sha256) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result == CUDA_SUCCESS && memcmp(sha256, args->sha256.data, GPD_SHA256_SIZE)) {
		gpd_session_violation(session, "an image does not match its SHA-256");
		result = CUDA_ERROR_INVALID_IMAGE;
	}
	if (result == CUDA_SUCCESS) {
		*blob_p =
			gpd_image_cache_add(&session->modules->uploader, sha256, bytes, args->size);
		result = *blob_p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		free(bytes);
	}
	gpd_image_cache_abandon_upload(&session->modules->uploader);
	return result;
}

static CUresult
image_check(struct gpd_session *session, struct gpd_blob *blob)
{
	if (blob->image_error == 0)
		return CUDA_SUCCESS;
	gpd_session_log(session, GPD_LOG_WARNING, "an image is refused: %s",
			blob->error_text ? blob->error_text : strerror(-blob->image_error));
	return blob->image_error == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
}

CUresult
gpd_image_bytes(struct gpd_session *session, const struct gp_args_gpImageLoad *args,
		struct gpd_blob **blob_p)
{
	uint64_t bulk = session->current.bulk_left;
	struct gpd_image_key key = { .size = args->size };
	struct gpd_unpacking unpacking;
	CUresult result;

	*blob_p = NULL;
	if (!session->modules->uploader.tenant)
		session->modules->uploader.tenant =
			session->account.ledger->tenants[session->account.entry->tenant].name;
	if (args->sha256.size != GPD_SHA256_SIZE || (bulk && bulk != args->size)) {
		gpd_session_violation(session,
				      "an image of %lu bytes with a tail of %lu and a hash of %zu",
				      args->size, bulk, args->sha256.size);
		return CUDA_ERROR_INVALID_VALUE;
	}
	result = gpd_image_charge_bytes(session, args->size);
	if (result != CUDA_SUCCESS) {
		gpd_image_cache_abandon_upload(&session->modules->uploader);
		return result;
	}
	memcpy(key.sha256, args->sha256.data, sizeof(key.sha256));
	gpd_unpacking_init(&unpacking, session);
	session->modules->uploader.limiter = &unpacking.limiter;
	if (bulk)
		result = image_upload(session, args, blob_p);
	else
		*blob_p = gpd_image_cache_get(&key, &session->modules->uploader, &session->closing);
	session->modules->uploader.limiter = NULL;
	if (*blob_p)
		result = image_check(session, *blob_p);
	if (result != CUDA_SUCCESS) {
		gpd_blob_unref(*blob_p);
		*blob_p = NULL;
	}
	if (!*blob_p)
		gpd_account_uncharge_code(&session->account, args->size);
	return result;
}
