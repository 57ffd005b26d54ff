/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/allowance.h"

#include "gpd_calls.h"
#include "server/common/base/integers.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/memory_internal.h"
#include "server/worker/memory/physical_memory.h"
#include "server/worker/session/session.h"

#include <stdlib.h>

/* Maximum number of allocations that back an allowance. */
#define PIECES_MAX 16
/* Beyond its need, a client gets at most this fraction of the free memory. */
#define SHARE 8

struct piece {
	uint64_t size;
	CUmemGenericAllocationHandle handle;
};

/* Allowance on one device: bytes that the client may still use, and the size of the physical memory
 * for them. */
struct device_allowance {
	uint64_t bytes, backed;
	unsigned int count;
	struct piece pieces[PIECES_MAX];
};

struct gpd_allowance {
	struct device_allowance devices[GPD_DEVICES_MAX];
};

/* NULL: there is none, or out of memory. */
static struct device_allowance *
allowance_get(struct gpd_session *session, int device, bool make)
{
	if (!session->memory->allowance && make)
		session->memory->allowance = calloc(1, sizeof(*session->memory->allowance));
	return session->memory->allowance && gpd_device_get(device)
		       ? &session->memory->allowance->devices[device]
		       : NULL;
}

static void
allowance_report(const struct gpd_session *session, int device,
		 const struct device_allowance *device_allowance)
{
	gpd_ledger_set_allowance(session->account.ledger, session->account.entry, device,
				 device_allowance->bytes, device_allowance->backed);
}

static CUresult
piece_add(struct device_allowance *device_allowance, int device, uint64_t size)
{
	const uint64_t unit = gpd_device_get(device)->granularity;
	struct piece piece = { .size = (size + unit - 1) & ~(unit - 1) };
	CUresult result = device_allowance->count < PIECES_MAX
				  ? gpd_physical_obtain(piece.size, device, &piece.handle)
				  : CUDA_ERROR_OUT_OF_MEMORY;

	if (result != CUDA_SUCCESS)
		return result;
	device_allowance->pieces[device_allowance->count++] = piece;
	device_allowance->backed += piece.size;
	return CUDA_SUCCESS;
}

static struct piece
piece_remove(struct device_allowance *device_allowance, unsigned int i)
{
	struct piece piece = device_allowance->pieces[i];

	device_allowance->backed -= piece.size;
	device_allowance->pieces[i] = device_allowance->pieces[--device_allowance->count];
	return piece;
}

/* Makes the physical memory match the allowance, with as few pieces as possible. */
static void
allowance_settle(const struct gpd_session *session, struct device_allowance *device_allowance,
		 int device)
{
	for (unsigned int i = device_allowance->count; i-- > 0;) {
		if (device_allowance->backed - device_allowance->pieces[i].size >=
		    device_allowance->bytes)
			gpd_driver.cuMemRelease(piece_remove(device_allowance, i).handle);
	}
	if (device_allowance->backed < device_allowance->bytes)
		(void)piece_add(device_allowance, device,
				device_allowance->bytes - device_allowance->backed);
	allowance_report(session, device, device_allowance);
}

/* The needed part is a separate piece, so that an allocation of that size can use it as it is. */
static bool
allowance_back(struct device_allowance *device_allowance, int device, uint64_t least)
{
	if (device_allowance->backed + least <= device_allowance->bytes && least > 0 &&
	    piece_add(device_allowance, device, least) != CUDA_SUCCESS)
		return false;
	return device_allowance->backed >= device_allowance->bytes ||
	       piece_add(device_allowance, device,
			 device_allowance->bytes - device_allowance->backed) == CUDA_SUCCESS;
}

/* Does not use gpd_account_allocate(), which waits for memory of others. */
static bool
allowance_add(struct gpd_session *session, struct device_allowance *device_allowance, int device,
	      uint64_t least, uint64_t more)
{
	struct gpd_account *account = &session->account;
	const uint64_t size = least + more;
	bool charged, covered;

	/* Before the charge, so that the memory never counts as in use. */
	device_allowance->bytes += size;
	allowance_report(session, device, device_allowance);
	charged = gpd_ledger_charge(account->ledger, account->entry, device, size);
	covered = charged && allowance_back(device_allowance, device, least);
	if (!covered) {
		device_allowance->bytes -= size;
		gpd_account_free(account, device, charged ? size : 0);
		allowance_report(session, device, device_allowance);
	}
	return covered;
}

/* Memory beyond the allowance: the rest of a piece of which the client has used a part. */
static uint64_t
allowance_get_excess(const struct device_allowance *device_allowance)
{
	return device_allowance->backed > device_allowance->bytes
		       ? device_allowance->backed - device_allowance->bytes
		       : 0;
}

/* Bytes that the quota and the device still allow. */
static uint64_t
device_get_room(struct gpd_session *session, int device,
		const struct device_allowance *device_allowance)
{
	const struct gpd_account *account = &session->account;
	size_t available = 0, total = 0;

	if (gpd_driver.cuMemGetInfo_v2(&available, &total) != CUDA_SUCCESS)
		return 0;
	available += allowance_get_excess(device_allowance);
	return gpd_u64_min(available,
			   gpd_ledger_headroom(account->ledger, account->entry, device, 0).left);
}

static uint64_t
allowance_grow(struct gpd_session *session, struct device_allowance *device_allowance, int device,
	       uint64_t least, uint64_t wanted)
{
	const uint64_t unit = gpd_device_get(device)->granularity;
	const uint64_t room = device_get_room(session, device, device_allowance);
	uint64_t more;

	if (room < least)
		return 0;
	more = gpd_u64_min(wanted - least, (room - least) / SHARE) & ~(unit - 1);
	if (least + more > 0 && allowance_add(session, device_allowance, device, least, more))
		return least + more;
	return least > 0 && more > 0 && allowance_add(session, device_allowance, device, least, 0)
		       ? least
		       : 0;
}

CUresult
gpd_gpMemoryGrant(struct gpd_session *session, const struct gp_args_gpMemoryGrant *args,
		  struct gp_reply_gpMemoryGrant *reply)
{
	struct device_allowance *device_allowance;
	CUresult result;

	if (!gpd_device_get(args->device) || !gpd_account_may_use(&session->account, args->device))
		return CUDA_ERROR_INVALID_DEVICE;
	device_allowance = allowance_get(session, args->device, true);
	if (!device_allowance)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (args->forgo > device_allowance->bytes || args->wanted < args->least)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpd_device_enter(args->device);
	if (result != CUDA_SUCCESS)
		return result;
	device_allowance->bytes -= args->forgo;
	gpd_account_free(&session->account, args->device, args->forgo);
	if (args->wanted > 0)
		reply->granted = allowance_grow(session, device_allowance, args->device,
						args->least, args->wanted);
	allowance_settle(session, device_allowance, args->device);
	return CUDA_SUCCESS;
}

uint64_t
gpd_allowance_create(struct gpd_session *session, int *device_p)
{
	int device = gpd_account_get_first_device(&session->account);
	struct device_allowance *device_allowance = allowance_get(session, device, true);

	/* The main thread must not wait until a context is created. */
	if (!device_allowance || !gpd_device_has_context(device) ||
	    gpd_device_enter(device) != CUDA_SUCCESS ||
	    !allowance_add(session, device_allowance, device, GPD_HEAP_SIZE, 0))
		return 0;
	*device_p = device;
	return GPD_HEAP_SIZE;
}

bool
gpd_allowance_consume(struct gpd_session *session, int device, uint64_t size)
{
	struct device_allowance *device_allowance = allowance_get(session, device, false);

	if (!device_allowance || size == 0 || size > device_allowance->bytes)
		return false;
	device_allowance->bytes -= size;
	allowance_report(session, device, device_allowance);
	return true;
}

CUresult
gpd_allowance_obtain(struct gpd_session *session, int device, CUresult (*obtain)(void *arg),
		     void *arg)
{
	struct device_allowance *device_allowance = allowance_get(session, device, false);
	CUresult result = obtain(arg);

	while (result == CUDA_ERROR_OUT_OF_MEMORY && device_allowance &&
	       device_allowance->count > 0) {
		gpd_driver.cuMemRelease(
			piece_remove(device_allowance, device_allowance->count - 1).handle);
		result = obtain(arg);
	}
	if (device_allowance)
		allowance_settle(session, device_allowance, device);
	return result;
}

struct allocation {
	uint64_t size;
	int device;
	CUmemGenericAllocationHandle handle;
};

static CUresult
obtain_memory(void *arg)
{
	struct allocation *allocation = arg;

	return gpd_physical_obtain(allocation->size, allocation->device, &allocation->handle);
}

CUresult
gpd_allowance_obtain_memory(struct gpd_session *session, int device, uint64_t size,
			    CUmemGenericAllocationHandle *handle_p)
{
	struct device_allowance *device_allowance = allowance_get(session, device, false);
	struct allocation allocation = { .size = size, .device = device };
	CUresult result;

	for (unsigned int i = 0; device_allowance && i < device_allowance->count; i++) {
		if (device_allowance->pieces[i].size == size) {
			*handle_p = piece_remove(device_allowance, i).handle;
			allowance_settle(session, device_allowance, device);
			return CUDA_SUCCESS;
		}
	}
	result = gpd_allowance_obtain(session, device, obtain_memory, &allocation);
	*handle_p = allocation.handle;
	return result;
}

uint64_t
gpd_allowance_get_excess(struct gpd_session *session, int device)
{
	const struct device_allowance *device_allowance = allowance_get(session, device, false);

	return device_allowance ? allowance_get_excess(device_allowance) : 0;
}

void
gpd_allowance_destroy(struct gpd_session *session)
{
	for (int i = 0; session->memory->allowance && i < gpd_devices.count; i++) {
		struct device_allowance *device_allowance = &session->memory->allowance->devices[i];

		while (device_allowance->count > 0)
			gpd_driver.cuMemRelease(piece_remove(device_allowance, 0).handle);
		gpd_account_free(&session->account, i, device_allowance->bytes);
		device_allowance->bytes = 0;
		allowance_report(session, i, device_allowance);
	}
	free(session->memory->allowance);
	session->memory->allowance = NULL;
}
