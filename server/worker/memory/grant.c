/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/grant.h"

#include "gpd_calls.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/physical.h"
#include "server/worker/session/session.h"

#include <stdlib.h>

/* In how many pieces the memory is held. */
#define PIECES_MAX 16
/* Of what is free a client gets this part beyond what it needs. */
#define SHARE 8

struct piece {
	uint64_t size;
	CUmemGenericAllocationHandle handle;
};

/* On one device: what the client may still use, and physical memory for at least as much. */
struct credit {
	uint64_t bytes, held;
	unsigned int count;
	struct piece pieces[PIECES_MAX];
};

struct gpd_grant {
	struct credit devices[GPD_DEVICES_MAX];
};

/* NULL: there never was any, or no memory for it. */
static struct credit *
credit_on(struct gpd_session *session, int device, bool make)
{
	if (!session->grant && make)
		session->grant = calloc(1, sizeof(*session->grant));
	return session->grant && gpd_device_get(device) ? &session->grant->devices[device] : NULL;
}

static void
tell(const struct gpd_session *session, int device, const struct credit *credit)
{
	gpd_ledger_set_granted(session->account.ledger, session->account.line, device,
			       credit->bytes, credit->held);
}

static CUresult
hold(struct credit *credit, int device, uint64_t size)
{
	const uint64_t unit = gpd_device_get(device)->granularity;
	struct piece piece = { .size = (size + unit - 1) & ~(unit - 1) };
	CUresult result = credit->count < PIECES_MAX
				  ? gpd_physical_obtain(piece.size, device, &piece.handle)
				  : CUDA_ERROR_OUT_OF_MEMORY;

	if (result != CUDA_SUCCESS)
		return result;
	credit->pieces[credit->count++] = piece;
	credit->held += piece.size;
	return CUDA_SUCCESS;
}

static struct piece
take_out(struct credit *credit, unsigned int i)
{
	struct piece piece = credit->pieces[i];

	credit->held -= piece.size;
	credit->pieces[i] = credit->pieces[--credit->count];
	return piece;
}

/* As much is held as there is credit, and no piece more. */
static void
settle(const struct gpd_session *session, struct credit *credit, int device)
{
	for (unsigned int i = credit->count; i-- > 0;) {
		if (credit->held - credit->pieces[i].size >= credit->bytes)
			gpd_driver.cuMemRelease(take_out(credit, i).handle);
	}
	if (credit->held < credit->bytes)
		(void)hold(credit, device, credit->bytes - credit->held);
	tell(session, device, credit);
}

/* What is needed is a piece of its own, which may become just that. */
static bool
cover(struct credit *credit, int device, uint64_t least)
{
	if (credit->held + least <= credit->bytes && least > 0 &&
	    hold(credit, device, least) != CUDA_SUCCESS)
		return false;
	return credit->held >= credit->bytes ||
	       hold(credit, device, credit->bytes - credit->held) == CUDA_SUCCESS;
}

/* Not gpd_account_allocate(), which waits for what others give back. */
static bool
add(struct gpd_session *session, struct credit *credit, int device, uint64_t least, uint64_t more)
{
	struct gpd_account *account = &session->account;
	const uint64_t size = least + more;
	bool taken, covered;

	/* First, so that it is at no time in use. */
	credit->bytes += size;
	tell(session, device, credit);
	taken = gpd_ledger_take(account->ledger, account->line, device, size);
	covered = taken && cover(credit, device, least);
	if (!covered) {
		credit->bytes -= size;
		gpd_account_free(account, device, taken ? size : 0);
		tell(session, device, credit);
	}
	return covered;
}

static uint64_t
lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What is held and is no credit: it was one piece, of which the client has begun to use a part. */
static uint64_t
beyond(const struct credit *credit)
{
	return credit->held > credit->bytes ? credit->held - credit->bytes : 0;
}

/* What the session can still take of the quota and of the device. */
static uint64_t
room_of(struct gpd_session *session, int device, const struct credit *credit)
{
	const struct gpd_account *account = &session->account;
	size_t available = 0, total = 0;

	if (gpd_driver.cuMemGetInfo_v2(&available, &total) != CUDA_SUCCESS)
		return 0;
	available += beyond(credit);
	return lesser(available, gpd_ledger_room(account->ledger, account->line, device, 0).left);
}

static uint64_t
grow(struct gpd_session *session, struct credit *credit, int device, uint64_t least,
     uint64_t wanted)
{
	const uint64_t unit = gpd_device_get(device)->granularity;
	const uint64_t room = room_of(session, device, credit);
	uint64_t more;

	if (room < least)
		return 0;
	more = lesser(wanted - least, (room - least) / SHARE) & ~(unit - 1);
	if (least + more > 0 && add(session, credit, device, least, more))
		return least + more;
	return least > 0 && more > 0 && add(session, credit, device, least, 0) ? least : 0;
}

CUresult
gpd_gpMemoryGrant(struct gpd_session *session, const struct gp_args_gpMemoryGrant *args,
		  struct gp_reply_gpMemoryGrant *reply)
{
	struct credit *credit;
	CUresult result;

	if (!gpd_device_get(args->device) || !gpd_account_may_use(&session->account, args->device))
		return CUDA_ERROR_INVALID_DEVICE;
	credit = credit_on(session, args->device, true);
	if (!credit)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (args->forgo > credit->bytes || args->wanted < args->least)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpd_device_enter(args->device);
	if (result != CUDA_SUCCESS)
		return result;
	credit->bytes -= args->forgo;
	gpd_account_free(&session->account, args->device, args->forgo);
	if (args->wanted > 0)
		reply->granted = grow(session, credit, args->device, args->least, args->wanted);
	settle(session, credit, args->device);
	return CUDA_SUCCESS;
}

static int
first_device(const struct gpd_session *session)
{
	for (int i = 0; i < gpd_devices.count; i++) {
		if (gpd_account_may_use(&session->account, i))
			return i;
	}
	return -1;
}

uint64_t
gpd_grant_make(struct gpd_session *session, int *device_p)
{
	int device = first_device(session);
	struct credit *credit = credit_on(session, device, true);

	if (!credit || gpd_device_enter(device) != CUDA_SUCCESS ||
	    !add(session, credit, device, GPD_HEAP_SIZE, 0))
		return 0;
	*device_p = device;
	return GPD_HEAP_SIZE;
}

bool
gpd_grant_take(struct gpd_session *session, int device, uint64_t size)
{
	struct credit *credit = credit_on(session, device, false);

	if (!credit || size == 0 || size > credit->bytes)
		return false;
	credit->bytes -= size;
	tell(session, device, credit);
	return true;
}

CUresult
gpd_grant_obtain(struct gpd_session *session, int device, CUresult (*obtain)(void *arg), void *arg)
{
	struct credit *credit = credit_on(session, device, false);
	CUresult result = obtain(arg);

	while (result == CUDA_ERROR_OUT_OF_MEMORY && credit && credit->count > 0) {
		gpd_driver.cuMemRelease(take_out(credit, credit->count - 1).handle);
		result = obtain(arg);
	}
	if (credit)
		settle(session, credit, device);
	return result;
}

struct wish {
	uint64_t size;
	int device;
	CUmemGenericAllocationHandle handle;
};

static CUresult
obtain_memory(void *arg)
{
	struct wish *wish = arg;

	return gpd_physical_obtain(wish->size, wish->device, &wish->handle);
}

CUresult
gpd_grant_memory(struct gpd_session *session, int device, uint64_t size,
		 CUmemGenericAllocationHandle *handle_p)
{
	struct credit *credit = credit_on(session, device, false);
	struct wish wish = { .size = size, .device = device };
	CUresult result;

	for (unsigned int i = 0; credit && i < credit->count; i++) {
		if (credit->pieces[i].size == size) {
			*handle_p = take_out(credit, i).handle;
			settle(session, credit, device);
			return CUDA_SUCCESS;
		}
	}
	result = gpd_grant_obtain(session, device, obtain_memory, &wish);
	*handle_p = wish.handle;
	return result;
}

uint64_t
gpd_grant_beyond(struct gpd_session *session, int device)
{
	const struct credit *credit = credit_on(session, device, false);

	return credit ? beyond(credit) : 0;
}

void
gpd_grant_forget(struct gpd_session *session)
{
	for (int i = 0; session->grant && i < gpd_devices.count; i++) {
		struct credit *credit = &session->grant->devices[i];

		while (credit->count > 0)
			gpd_driver.cuMemRelease(take_out(credit, 0).handle);
		gpd_account_free(&session->account, i, credit->bytes);
		credit->bytes = 0;
		tell(session, i, credit);
	}
	free(session->grant);
	session->grant = NULL;
}
