/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/share/offer.h"

#include "protocol/dec.h"
#include "server/worker/schedule/account.h"

#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

pthread_mutex_t gpd_offers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpd_offer *offers GP_GUARDED_BY(gpd_offers_lock);
static uint32_t last_number GP_GUARDED_BY(gpd_offers_lock);
static uint32_t worker GP_GUARDED_BY(gpd_offers_lock); /* 0: not chosen yet */

static bool
get_random(void *bytes, size_t size)
{
	return getrandom(bytes, size, 0) == (ssize_t)size;
}

static struct gpd_offer *
find_number(uint32_t number) GP_LOCKED(gpd_offers_lock)
{
	struct gpd_offer *offer;

	HASH_FIND(hh, offers, &number, sizeof(number), offer);
	return offer;
}

static bool
enter(struct gpd_offer *offer) GP_LOCKED(gpd_offers_lock)
{
	if (offer->number)
		return true;
	if (!get_random(offer->secret, sizeof(offer->secret)))
		return false;
	while (worker == 0) {
		if (!get_random(&worker, sizeof(worker)))
			return false;
	}
	do
		last_number++;
	while (last_number == 0 || find_number(last_number));
	offer->number = last_number;
	HASH_ADD(hh, offers, number, sizeof(offer->number), offer);
	return true;
}

bool
gpd_offer_make(const struct gpd_account *account, struct gpd_offer *offer,
	       struct gp_ipc_handle *handle)
{
	bool made;

	offer->line = account->line;
	pthread_mutex_lock(&gpd_offers_lock);
	made = enter(offer);
	handle->worker = worker;
	pthread_mutex_unlock(&gpd_offers_lock);
	memcpy(handle->magic, GP_IPC_MAGIC, sizeof(handle->magic));
	handle->kind = (uint8_t)offer->kind;
	handle->daemon = account->ledger->daemon;
	handle->number = offer->number;
	memcpy(handle->secret, offer->secret, sizeof(handle->secret));
	return made;
}

void
gpd_offer_withdraw(struct gpd_offer *offer)
{
	pthread_mutex_lock(&gpd_offers_lock);
	if (offer->number)
		HASH_DEL(offers, offer);
	offer->number = 0;
	explicit_bzero(offer->secret, sizeof(offer->secret));
	pthread_mutex_unlock(&gpd_offers_lock);
}

static CUresult
refuse(const char **why_p, const char *why, CUresult result)
{
	*why_p = why;
	return result;
}

/* What a handle says of itself is looked at before the secret: it tells nobody anything. */
static CUresult
check_place(const struct gpd_account *account, const struct gp_ipc_handle *handle,
	    enum gp_ipc_kind kind, const char **why_p) GP_LOCKED(gpd_offers_lock)
{
	if (memcmp(handle->magic, GP_IPC_MAGIC, sizeof(handle->magic)) != 0 ||
	    handle->kind != (uint8_t)kind)
		return refuse(why_p, "it is no such handle of gpupool's", CUDA_ERROR_INVALID_VALUE);
	if (handle->daemon != account->ledger->daemon)
		return refuse(why_p, "it is of another daemon, or of one that has ended",
			      CUDA_ERROR_INVALID_HANDLE);
	if (handle->worker != worker)
		return refuse(why_p,
			      "it is of another worker process: only sessions of class shared "
			      "that one worker serves can open it",
			      CUDA_ERROR_NOT_SUPPORTED);
	return CUDA_SUCCESS;
}

CUresult
gpd_offer_find_locked(const struct gpd_account *account, const struct gp_bytes *bytes,
		      enum gp_ipc_kind kind, struct gpd_offer **offer_p, const char **why_p)
{
	struct gp_ipc_handle handle;
	struct gpd_offer *offer;
	CUresult result;

	if (bytes->size != sizeof(handle))
		return refuse(why_p, "it has not 64 bytes", CUDA_ERROR_INVALID_VALUE);
	memcpy(&handle, bytes->data, sizeof(handle));
	result = check_place(account, &handle, kind, why_p);
	if (result != CUDA_SUCCESS)
		return result;
	offer = find_number(handle.number);
	if (!offer || offer->kind != kind ||
	    CRYPTO_memcmp(offer->secret, handle.secret, sizeof(handle.secret)) != 0)
		return refuse(why_p, "what it stood for is gone, or never was",
			      CUDA_ERROR_INVALID_HANDLE);
	if (offer->line->tenant != account->line->tenant)
		return refuse(why_p, "it is another tenant's", CUDA_ERROR_INVALID_HANDLE);
	*offer_p = offer;
	return CUDA_SUCCESS;
}
