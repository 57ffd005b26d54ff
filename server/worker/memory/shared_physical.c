/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/shared_physical.h"

#include "base/lock.h"
#include "server/worker/device/driver.h"
#include "server/worker/schedule/account.h"

#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

struct gpd_shared_physical_user {
	struct gpd_shared_physical_user *next;
	struct gpd_ledger_session *entry;
	unsigned int uses;
};

/* Protects the lists of users. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct gpd_shared_physical_user *
user_find_locked(struct gpd_shared_physical *shared, const struct gpd_ledger_session *entry)
	GP_LOCKED(lock)
{
	struct gpd_shared_physical_user *user;

	LL_SEARCH_SCALAR(shared->users, user, entry, entry);
	return user;
}

bool
gpd_shared_physical_ref(struct gpd_shared_physical *shared, const struct gpd_account *account)
{
	struct gpd_shared_physical_user *user;

	pthread_mutex_lock(&lock);
	user = user_find_locked(shared, account->entry);
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (user) {
			user->entry = account->entry;
			LL_APPEND(shared->users, user);
		}
	}
	if (user)
		user->uses++;
	pthread_mutex_unlock(&lock);
	return user != NULL;
}

struct gpd_shared_physical *
gpd_shared_physical_create(const struct gpd_account *account, CUmemGenericAllocationHandle handle,
			   uint64_t size, int device)
{
	struct gpd_shared_physical *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	shared->handle = handle;
	shared->size = size;
	shared->device = device;
	shared->ledger = account->ledger;
	if (gpd_shared_physical_ref(shared, account))
		return shared;
	free(shared);
	return NULL;
}

/* Returns whether it has no user left. */
static bool
shared_unref_locked(struct gpd_shared_physical *shared, struct gpd_ledger_session *entry)
	GP_LOCKED(lock)
{
	struct gpd_shared_physical_user *user = user_find_locked(shared, entry);
	bool pays = user == shared->users;

	if (--user->uses > 0)
		return false;
	LL_DELETE(shared->users, user);
	free(user);
	if (pays && shared->users)
		gpd_ledger_move_charge(entry, shared->users->entry, shared->device, shared->size);
	return !shared->users;
}

void
gpd_shared_physical_unref(struct gpd_shared_physical *shared, const struct gpd_account *account)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = shared_unref_locked(shared, account->entry);
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	(void)gpd_driver.cuMemRelease(shared->handle);
	gpd_ledger_uncharge(shared->ledger, account->entry, shared->device, shared->size);
	free(shared);
}
