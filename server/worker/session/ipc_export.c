/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/ipc_export.h"

#include "protocol/dec.h"
#include "server/worker/schedule/account.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

pthread_mutex_t gpd_ipc_exports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpd_ipc_export *exports GP_GUARDED_BY(gpd_ipc_exports_lock);
static uint32_t last_number GP_GUARDED_BY(gpd_ipc_exports_lock);
static uint32_t worker GP_GUARDED_BY(gpd_ipc_exports_lock); /* random ID; 0: not chosen */

static bool
get_random(void *bytes, size_t size)
{
	return getrandom(bytes, size, 0) == (ssize_t)size;
}

static struct gpd_ipc_export *
export_find(uint32_t number) GP_LOCKED(gpd_ipc_exports_lock)
{
	struct gpd_ipc_export *ipc_export;

	HASH_FIND(hh, exports, &number, sizeof(number), ipc_export);
	return ipc_export;
}

static bool
export_enter(struct gpd_ipc_export *ipc_export) GP_LOCKED(gpd_ipc_exports_lock)
{
	if (ipc_export->number)
		return true;
	if (!get_random(ipc_export->secret, sizeof(ipc_export->secret)))
		return false;
	while (worker == 0) {
		if (!get_random(&worker, sizeof(worker)))
			return false;
	}
	do
		last_number++;
	while (last_number == 0 || export_find(last_number));
	ipc_export->number = last_number;
	HASH_ADD(hh, exports, number, sizeof(ipc_export->number), ipc_export);
	return true;
}

struct gp_ipc_handle *
gpd_ipc_export_create(const struct gpd_account *account, struct gpd_ipc_export *ipc_export)
{
	struct gp_ipc_handle *handle = calloc(1, sizeof(*handle));
	bool made;

	if (!handle)
		return NULL;
	ipc_export->entry = account->entry;
	pthread_mutex_lock(&gpd_ipc_exports_lock);
	made = export_enter(ipc_export);
	handle->worker = worker;
	pthread_mutex_unlock(&gpd_ipc_exports_lock);
	if (!made) {
		free(handle);
		return NULL;
	}
	memcpy(handle->magic, GP_IPC_MAGIC, sizeof(handle->magic));
	handle->kind = (uint8_t)ipc_export->kind;
	handle->daemon = account->ledger->daemon;
	handle->number = ipc_export->number;
	memcpy(handle->secret, ipc_export->secret, sizeof(handle->secret));
	return handle;
}

void
gpd_ipc_export_withdraw(struct gpd_ipc_export *ipc_export)
{
	pthread_mutex_lock(&gpd_ipc_exports_lock);
	if (ipc_export->number)
		HASH_DEL(exports, ipc_export);
	ipc_export->number = 0;
	explicit_bzero(ipc_export->secret, sizeof(ipc_export->secret));
	pthread_mutex_unlock(&gpd_ipc_exports_lock);
}

static CUresult
handle_refuse(const char **why_p, const char *why, CUresult result)
{
	*why_p = why;
	return result;
}

/* The plain members are checked before the secret; the result reveals nothing. */
static CUresult
handle_check_origin(const struct gpd_account *account, const struct gp_ipc_handle *handle,
		    enum gp_ipc_kind kind, const char **why_p) GP_LOCKED(gpd_ipc_exports_lock)
{
	if (memcmp(handle->magic, GP_IPC_MAGIC, sizeof(handle->magic)) != 0 ||
	    handle->kind != (uint8_t)kind)
		return handle_refuse(why_p, "it is not a gpupool handle of this kind",
				     CUDA_ERROR_INVALID_VALUE);
	if (handle->daemon != account->ledger->daemon)
		return handle_refuse(why_p, "it is of another daemon, or of one that has ended",
				     CUDA_ERROR_INVALID_HANDLE);
	if (handle->worker != worker)
		return handle_refuse(why_p,
				     "it is of another worker process: only sessions of the same "
				     "worker can open it",
				     CUDA_ERROR_NOT_SUPPORTED);
	return CUDA_SUCCESS;
}

CUresult
gpd_ipc_export_find_locked(const struct gpd_account *account, const struct gp_bytes *bytes,
			   enum gp_ipc_kind kind, struct gpd_ipc_export **ipc_export_p,
			   const char **why_p)
{
	struct gp_ipc_handle handle;
	struct gpd_ipc_export *ipc_export;
	CUresult result;

	if (bytes->size != sizeof(handle))
		return handle_refuse(why_p, "its size is not 64 bytes", CUDA_ERROR_INVALID_VALUE);
	memcpy(&handle, bytes->data, sizeof(handle));
	result = handle_check_origin(account, &handle, kind, why_p);
	if (result != CUDA_SUCCESS)
		return result;
	ipc_export = export_find(handle.number);
	if (!ipc_export || ipc_export->kind != kind ||
	    CRYPTO_memcmp(ipc_export->secret, handle.secret, sizeof(handle.secret)) != 0)
		return handle_refuse(why_p, "the exported object does not exist",
				     CUDA_ERROR_INVALID_HANDLE);
	if (ipc_export->entry->tenant != account->entry->tenant)
		return handle_refuse(why_p, "it is another tenant's", CUDA_ERROR_INVALID_HANDLE);
	*ipc_export_p = ipc_export;
	return CUDA_SUCCESS;
}
