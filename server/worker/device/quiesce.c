/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/quiesce.h"

#include "base/clock.h"
#include "base/lock.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"

#include <pthread.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
/* Polling intervals: in the first millisecond, and after it. */
#define NAP_NS (20 * US)
#define NAP_LONG_NS (200 * US)
/* A stopped thread checks at this interval whether its session has ended. */
#define POLL_NS 20000000

uint64_t gpd_quiesce_short_ns = 10 * MS;
uint64_t gpd_quiesce_long_ns = 250 * MS;
uint64_t gpd_quiesce_stop_ns = 60000 * MS;
uint64_t gpd_quiesce_limit_ns = 120000 * MS;
_Atomic uint32_t gpd_quiesce_stopped;

static struct quiescence {
	unsigned int callers; /* between begin and end */
	uint64_t stopped_ns;  /* start of the stop; 0: launches are not stopped */
	bool spent;           /* not stopped again for these callers */
	_Atomic bool last;    /* the long work is done */
} quiescences[GPD_DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over;
GP_COND_CONSTRUCTOR(over);

static void
launches_release(int device) GP_LOCKED(lock)
{
	quiescences[device].stopped_ns = 0;
	atomic_fetch_and(&gpd_quiesce_stopped, ~(1u << device));
	pthread_cond_broadcast(&over);
}

/* Called when the device does not become nearly idle by itself. */
static void
launches_stop(int device, uint64_t now)
{
	struct quiescence *quiescence = &quiescences[device];

	pthread_mutex_lock(&lock);
	if (!quiescence->stopped_ns && !quiescence->spent) {
		quiescence->stopped_ns = now;
		atomic_fetch_or(&gpd_quiesce_stopped, 1u << device);
	} else if (quiescence->stopped_ns && now - quiescence->stopped_ns > gpd_quiesce_stop_ns) {
		/* The running work may depend on a launch that is stopped. */
		quiescence->spent = true;
		launches_release(device);
	}
	pthread_mutex_unlock(&lock);
}

uint64_t
gpd_quiesce_get_stop_threshold_ns(int device)
{
	return atomic_load(&quiescences[device].last) ? gpd_quiesce_short_ns : gpd_quiesce_long_ns;
}

static bool
wait_is_cancelled(const _Atomic bool *given_up)
{
	return atomic_load(&gpd_devices.lost) || (given_up && atomic_load(given_up));
}

/* Waits at most `most` for the work that the GPU has now. Returns the time it took, or
 * UINT64_MAX. */
static uint64_t
work_wait(int device, CUevent event, bool stops, uint64_t most, const _Atomic bool *given_up)
{
	uint64_t start = gp_now_ns(), took = 0;

	/* If the driver cannot record the event, the following driver call waits by itself. */
	if (gpd_driver.cuCtxRecordEvent(gpd_devices.all[device].primary, event) != CUDA_SUCCESS)
		return 0;
	while (gpd_driver.cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
		if (wait_is_cancelled(given_up) || took > most)
			return UINT64_MAX;
		if (stops && took > gpd_quiesce_short_ns)
			launches_stop(device, start + took);
		gp_sleep_ns(took < MS ? NAP_NS : NAP_LONG_NS);
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

/* Returns how long the GPU's work took in the last round, or UINT64_MAX. */
static uint64_t
idle_wait(int device, bool stops, const _Atomic bool *given_up)
{
	uint64_t start = gp_now_ns(), took;
	CUevent event;

	if (!make_event(&event))
		return 0;
	do {
		took = work_wait(device, event, stops, UINT64_MAX, given_up);
		if (stops && took > gpd_quiesce_short_ns && took <= gpd_quiesce_long_ns)
			atomic_store(&quiescences[device].last, true);
	} while (took > gpd_quiesce_short_ns && took != UINT64_MAX &&
		 gp_now_ns() - start < gpd_quiesce_limit_ns);
	(void)gpd_driver.cuEventDestroy_v2(event);
	return took;
}

bool
gpd_quiesce_begin(int device, const _Atomic bool *given_up)
{
	pthread_mutex_lock(&lock);
	quiescences[device].callers++;
	pthread_mutex_unlock(&lock);
	return idle_wait(device, true, given_up) != UINT64_MAX && !wait_is_cancelled(given_up);
}

bool
gpd_quiesce_try(int device)
{
	return idle_wait(device, false, NULL) <= gpd_quiesce_short_ns;
}

bool
gpd_quiesce_is_idle(int device)
{
	uint64_t took;
	CUevent event;

	if (!make_event(&event))
		return true;
	took = work_wait(device, event, false, gpd_quiesce_short_ns, NULL);
	(void)gpd_driver.cuEventDestroy_v2(event);
	return took != UINT64_MAX;
}

void
gpd_quiesce_end(int device)
{
	pthread_mutex_lock(&lock);
	if (--quiescences[device].callers == 0) {
		quiescences[device].spent = false;
		atomic_store(&quiescences[device].last, false);
		launches_release(device);
	}
	pthread_mutex_unlock(&lock);
}

void
gpd_quiesce_wait_end(int device, const _Atomic bool *given_up)
{
	pthread_mutex_lock(&lock);
	while (gpd_quiesce_is_stopped(device) && !wait_is_cancelled(given_up))
		(void)gp_cond_wait_until(&over, &lock, gp_now_ns() + POLL_NS);
	pthread_mutex_unlock(&lock);
}
