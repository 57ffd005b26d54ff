/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/quiet.h"

#include "base/clock.h"
#include "base/lock.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"

#include <pthread.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
/* How often a moment is looked for: at first, and when it does not come soon. */
#define NAP_NS (20 * US)
#define NAP_LONG_NS (200 * US)
/* Who is stopped looks so often whether its session has ended. */
#define LOOK_NS 20000000

uint64_t gpd_quiet_short_ns = 10 * MS;
uint64_t gpd_quiet_long_ns = 250 * MS;
uint64_t gpd_quiet_stop_ns = 60000 * MS;
uint64_t gpd_quiet_limit_ns = 120000 * MS;
_Atomic uint32_t gpd_quiet_stopped;

static struct quiet {
	unsigned int callers; /* between begin and end */
	uint64_t stopped_ns;  /* since when; 0: nobody is stopped */
	bool spent;           /* nobody is stopped again for these callers */
	_Atomic bool last;    /* there is no long work any more */
} quiets[GPD_DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over;
GP_COND_AT_START(over);

static void
let_go(int device) GP_LOCKED(lock)
{
	quiets[device].stopped_ns = 0;
	atomic_fetch_and(&gpd_quiet_stopped, ~(1u << device));
	pthread_cond_broadcast(&over);
}

/* The moment does not come by itself. */
static void
stop(int device, uint64_t now)
{
	struct quiet *quiet = &quiets[device];

	pthread_mutex_lock(&lock);
	if (!quiet->stopped_ns && !quiet->spent) {
		quiet->stopped_ns = now;
		atomic_fetch_or(&gpd_quiet_stopped, 1u << device);
	} else if (quiet->stopped_ns && now - quiet->stopped_ns > gpd_quiet_stop_ns) {
		/* What it waits for may be waiting for something that is stopped. */
		quiet->spent = true;
		let_go(device);
	}
	pthread_mutex_unlock(&lock);
}

uint64_t
gpd_quiet_patience(int device)
{
	return atomic_load(&quiets[device].last) ? gpd_quiet_short_ns : gpd_quiet_long_ns;
}

static bool
is_vain(const _Atomic bool *given_up)
{
	return atomic_load(&gpd_devices.lost) || (given_up && atomic_load(given_up));
}

/* Waits for what the GPU has been given, no longer than `most`; the time it took, or UINT64_MAX. */
static uint64_t
await(int device, CUevent event, bool stops, uint64_t most, const _Atomic bool *given_up)
{
	uint64_t start = gp_now_ns(), took = 0;

	/* If the driver cannot tell it is left to the driver to wait. */
	if (gpd_driver.cuCtxRecordEvent(gpd_devices.all[device].primary, event) != CUDA_SUCCESS)
		return 0;
	while (gpd_driver.cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
		if (is_vain(given_up) || took > most)
			return UINT64_MAX;
		if (stops && took > gpd_quiet_short_ns)
			stop(device, start + took);
		gp_nap(took < MS ? NAP_NS : NAP_LONG_NS);
		took = gp_now_ns() - start;
	}
	return took;
}

static bool
make_event(CUevent *event)
{
	return gpd_driver_has(cuCtxRecordEvent) &&
	       gpd_driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
}

/* How long the GPU's work took when it was looked at last, or UINT64_MAX. */
static uint64_t
seek(int device, bool stops, const _Atomic bool *given_up)
{
	uint64_t start = gp_now_ns(), took;
	CUevent event;

	if (!make_event(&event))
		return 0;
	do {
		took = await(device, event, stops, UINT64_MAX, given_up);
		if (stops && took > gpd_quiet_short_ns && took <= gpd_quiet_long_ns)
			atomic_store(&quiets[device].last, true);
	} while (took > gpd_quiet_short_ns && took != UINT64_MAX &&
		 gp_now_ns() - start < gpd_quiet_limit_ns);
	(void)gpd_driver.cuEventDestroy_v2(event);
	return took;
}

bool
gpd_quiet_begin(int device, const _Atomic bool *given_up)
{
	pthread_mutex_lock(&lock);
	quiets[device].callers++;
	pthread_mutex_unlock(&lock);
	return seek(device, true, given_up) != UINT64_MAX && !is_vain(given_up);
}

bool
gpd_quiet_seek(int device)
{
	return seek(device, false, NULL) <= gpd_quiet_short_ns;
}

bool
gpd_quiet_is(int device)
{
	uint64_t took;
	CUevent event;

	if (!make_event(&event))
		return true;
	took = await(device, event, false, gpd_quiet_short_ns, NULL);
	(void)gpd_driver.cuEventDestroy_v2(event);
	return took != UINT64_MAX;
}

void
gpd_quiet_end(int device)
{
	pthread_mutex_lock(&lock);
	if (--quiets[device].callers == 0) {
		quiets[device].spent = false;
		atomic_store(&quiets[device].last, false);
		let_go(device);
	}
	pthread_mutex_unlock(&lock);
}

void
gpd_quiet_await_end(int device, const _Atomic bool *given_up)
{
	pthread_mutex_lock(&lock);
	while (gpd_quiet_is_stopped(device) && !is_vain(given_up))
		(void)gp_cond_wait_until(&over, &lock, gp_now_ns() + LOOK_NS);
	pthread_mutex_unlock(&lock);
}
