/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"
#include "base/thread.h"
#include "server/common/base/log.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/partition_table.h"
#include "server/worker/device/quiesce.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

_Static_assert(GPD_PARTITION_DEVICES == GPD_DEVICES_MAX, "a share for each device");
_Static_assert(GPD_PARTITION_DEVICES <= 32, "a bit for each device");

/* The driver's finest split. */
#define GRANULARITY 2

unsigned int gpd_partition_idle_max = 16;
pthread_mutex_t gpd_partition_lock = PTHREAD_MUTEX_INITIALIZER;
struct gpd_partition_table *gpd_partition_tables[GPD_PARTITION_DEVICES];

/* Number of threads that are creating green contexts. */
static unsigned int makers GP_GUARDED_BY(gpd_partition_lock);
static pthread_cond_t made;
GP_COND_CONSTRUCTOR(made);

static bool
driver_can(void)
{
	/* These came last; a driver that has them has the others. */
	return gpd_driver_has(cuGreenCtxCreate) && gpd_driver_has(cuGreenCtxStreamCreate);
}

static CUresult
table_split(struct gpd_partition_table *table, CUdevice device, unsigned int granularity)
{
	const bool fine = granularity < 8;
	CUdevResource whole;
	CUresult result;

	table->granularity = granularity;
	table->count = GPD_GROUPS_MAX;
	result = gpd_driver.cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDevSmResourceSplitByCount(
			table->groups, &table->count, &whole, NULL,
			fine ? CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING : 0, granularity);
	if (result == CUDA_SUCCESS && (table->count == 0 || table->groups[0].sm.smCount == 0))
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		table->group_size = table->groups[0].sm.smCount;
	return result;
}

/* On failure returns NULL, and *result is the reason. */
static struct gpd_partition_table *
create_table(int device, unsigned int granularity, CUresult *result)
{
	struct gpd_partition_table *table = calloc(1, sizeof(*table));

	*result = CUDA_ERROR_NOT_SUPPORTED;
	if (table && driver_can())
		*result = table_split(table, gpd_devices.all[device].device, granularity);
	if (*result == CUDA_SUCCESS)
		return table;
	free(table);
	return NULL;
}

void
gpd_partition_start(int device)
{
	CUresult result;

	gpd_partition_tables[device] = create_table(device, GRANULARITY, &result);
	if (!gpd_partition_tables[device])
		gpd_info("device %d: no green contexts (%d): shares of its multiprocessors are "
			 "not enforced",
			 device, (int)result);
}

static bool
table_is_used(const struct gpd_partition_table *table)
{
	for (const struct gpd_partition *p = table->partitions; p; p = p->next) {
		if (p->refs)
			return true;
	}
	return false;
}

static void
destroy_table(struct gpd_partition_table *table)
{
	while (table && table->partitions) {
		struct gpd_partition *partition = table->partitions;

		table->partitions = partition->next;
		gpd_partition_destroy(partition);
	}
	free(table);
}

void
gpd_partition_set_granularity(int device, unsigned int granularity)
{
	struct gpd_partition_table *table, *other, *old = NULL;
	CUresult result;

	pthread_mutex_lock(&gpd_partition_lock);
	table = gpd_partition_tables[device];
	if (table && table->granularity != granularity && !table_is_used(table)) {
		other = create_table(device, granularity, &result);
		if (other) {
			old = table;
			gpd_partition_tables[device] = other;
		} else {
			table->granularity = granularity;
			gpd_warning("device %d: its multiprocessors cannot be given out by %u: %d",
				    device, granularity, (int)result);
		}
	}
	pthread_mutex_unlock(&gpd_partition_lock);
	destroy_table(old);
}

void
gpd_partition_destroy(struct gpd_partition *partition)
{
	if (partition->green && atomic_load(&gpd_devices.lost) == 0)
		(void)gpd_driver.cuGreenCtxDestroy(partition->green);
	gpd_partition_unref(partition->base);
	pthread_mutex_destroy(&partition->lock);
	free(partition);
}

void
gpd_partition_stop(int device)
{
	pthread_mutex_lock(&gpd_partition_lock);
	while (makers)
		pthread_cond_wait(&made, &gpd_partition_lock);
	pthread_mutex_unlock(&gpd_partition_lock);
	destroy_table(gpd_partition_tables[device]);
	gpd_partition_tables[device] = NULL;
}

struct gpd_partition *
gpd_partition_ref_locked(struct gpd_partition *partition)
{
	if (partition && partition->refs++ == 0)
		gpd_partition_tables[partition->device]->idle--;
	return partition;
}

struct gpd_partition *
gpd_partition_unref_locked(struct gpd_partition *partition)
{
	struct gpd_partition_table *table;

	if (!partition || --partition->refs)
		return NULL;
	if (partition->is_part)
		return partition;
	table = gpd_partition_tables[partition->device];
	LL_DELETE(table->partitions, partition);
	if (!partition->green)
		return partition;
	LL_APPEND(table->partitions, partition);
	if (++table->idle <= gpd_partition_idle_max)
		return NULL;
	table->idle--;
	LL_SEARCH_SCALAR(table->partitions, partition, refs, 0);
	LL_DELETE(table->partitions, partition);
	return partition;
}

struct gpd_partition *
gpd_partition_acquire(struct gpd_partition *partition)
{
	pthread_mutex_lock(&gpd_partition_lock);
	(void)gpd_partition_ref_locked(partition);
	pthread_mutex_unlock(&gpd_partition_lock);
	return partition;
}

void
gpd_partition_unref(struct gpd_partition *partition)
{
	struct gpd_partition *evicted;

	if (!partition)
		return;
	pthread_mutex_lock(&gpd_partition_lock);
	evicted = gpd_partition_unref_locked(partition);
	pthread_mutex_unlock(&gpd_partition_lock);
	if (evicted)
		gpd_partition_destroy(evicted);
}

struct gpd_partition *
gpd_partition_find_or_create(int device, const struct gpd_groups *set, uint32_t groups)
{
	struct gpd_partition_table *table = gpd_partition_tables[device];
	struct gpd_partition *partition = table->partitions;

	while (partition && memcmp(&partition->set, set, sizeof(*set)) != 0)
		partition = partition->next;
	if (partition)
		return gpd_partition_ref_locked(partition);
	partition = calloc(1, sizeof(*partition));
	if (!partition)
		return NULL;
	partition->device = device;
	partition->set = *set;
	partition->groups = groups;
	partition->refs = 1;
	pthread_mutex_init(&partition->lock, NULL);
	LL_PREPEND(table->partitions, partition);
	return partition;
}

/* Collects the resources of the partition; the array must have room for GPD_GROUPS_MAX. */
static CUresult
partition_collect(const struct gpd_partition *partition, const _Atomic bool *given_up,
		  CUdevResource *resources, unsigned int *count)
{
	const struct gpd_partition_table *table = gpd_partition_tables[partition->device];

	*count = 0;
	if (partition->is_part)
		return gpd_part_collect(partition, given_up, resources, count);
	for (unsigned int i = 0; i < table->count; i++) {
		if (gpd_groups_has(&partition->set, i))
			resources[(*count)++] = table->groups[i];
	}
	return CUDA_SUCCESS;
}

/* The partition's lock must be held. */
static CUresult
make_green(struct gpd_partition *partition, CUdevResource *resources, unsigned int count)
{
	CUdevResourceDesc desc;
	CUgreenCtx green;
	CUresult result = gpd_driver.cuDevResourceGenerateDesc(&desc, resources, count);

	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuGreenCtxCreate(&green, desc,
						     gpd_devices.all[partition->device].device,
						     CU_GREEN_CTX_DEFAULT_STREAM);
	if (result == CUDA_SUCCESS)
		__atomic_store_n(&partition->green, green, __ATOMIC_RELEASE);
	return result;
}

static CUgreenCtx
partition_get_green(const struct gpd_partition *partition)
{
	return __atomic_load_n(&partition->green, __ATOMIC_ACQUIRE);
}

/* Creates the green context if there is none yet. Meanwhile the driver blocks all launches and
 * waits for running kernels, hence the quiescence. */
static CUresult
green_make_quiesced(struct gpd_partition *partition, const _Atomic bool *given_up)
{
	CUdevResource resources[GPD_GROUPS_MAX];
	unsigned int count;
	CUresult result;

	if (partition_get_green(partition))
		return CUDA_SUCCESS;
	result = partition_collect(partition, given_up, resources, &count);
	if (result != CUDA_SUCCESS)
		return result;
	result = CUDA_ERROR_DEINITIALIZED;
	if (gpd_quiesce_begin(partition->device, given_up)) {
		pthread_mutex_lock(&partition->lock);
		result = partition->green ? CUDA_SUCCESS : make_green(partition, resources, count);
		pthread_mutex_unlock(&partition->lock);
	}
	gpd_quiesce_end(partition->device);
	return result;
}

CUresult
gpd_partition_resource(struct gpd_partition *partition, int device, const _Atomic bool *given_up,
		       CUdevResource *resource)
{
	CUresult result;

	if (!driver_can() || !gpd_driver_has(cuGreenCtxGetDevResource))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!partition)
		return gpd_driver.cuDeviceGetDevResource(gpd_devices.all[device].device, resource,
							 CU_DEV_RESOURCE_TYPE_SM);
	result = green_make_quiesced(partition, given_up);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&partition->lock);
	result = gpd_driver.cuGreenCtxGetDevResource(partition->green, resource,
						     CU_DEV_RESOURCE_TYPE_SM);
	pthread_mutex_unlock(&partition->lock);
	return result;
}

CUresult
gpd_partition_stream(struct gpd_partition *partition, int priority, const _Atomic bool *given_up,
		     CUstream *stream)
{
	CUresult result;

	if (!partition)
		return gpd_driver.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING,
							     priority);
	result = green_make_quiesced(partition, given_up);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&partition->lock);
	result = gpd_driver.cuGreenCtxStreamCreate(stream, partition->green, CU_STREAM_NON_BLOCKING,
						   priority);
	pthread_mutex_unlock(&partition->lock);
	return result;
}

static void
partition_make_done(struct gpd_partition *partition)
{
	atomic_store(&partition->coming, false);
	gpd_partition_unref(partition);
	pthread_mutex_lock(&gpd_partition_lock);
	makers--;
	pthread_cond_broadcast(&made);
	pthread_mutex_unlock(&gpd_partition_lock);
}

static void *
partition_make_run(void *arg)
{
	struct gpd_partition *partition = arg;

	/* On failure the streams stay where they are; the next use tries again. */
	if (gpd_device_enter(partition->device) == CUDA_SUCCESS)
		(void)green_make_quiesced(partition, NULL);
	partition_make_done(partition);
	return NULL;
}

CUresult
gpd_partition_context(const struct gpd_partition *partition, int device, CUcontext *context_p)
{
	if (partition)
		return gpd_driver.cuCtxFromGreenCtx(context_p, partition_get_green(partition));
	*context_p = gpd_devices.all[device].primary;
	return CUDA_SUCCESS;
}

bool
gpd_partition_is_ready(struct gpd_partition *partition)
{
	if (!partition || partition_get_green(partition))
		return true;
	/* Checked first, because the test for a nearly idle device takes a while, too. */
	if (atomic_load(&partition->coming))
		return false;
	if (gpd_quiesce_is_idle(partition->device))
		return true;
	if (atomic_exchange(&partition->coming, true))
		return false;
	pthread_mutex_lock(&gpd_partition_lock);
	(void)gpd_partition_ref_locked(partition);
	makers++;
	pthread_mutex_unlock(&gpd_partition_lock);
	if (!gp_thread_start("partition", 0, partition_make_run, partition))
		return false;
	partition_make_done(partition);
	return true;
}
