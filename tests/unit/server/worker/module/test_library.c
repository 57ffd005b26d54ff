/* SPDX-License-Identifier: Apache-2.0 */
/* Device code that several sessions use: when it is loaded, how it counts and when it goes. */
#include "server/worker/device/driver.h"
#include "server/worker/device/quiesce.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/module/unpacking.h"
#include "tests/unit/server/library_fixture.h"

#include <pthread.h>
#include <unistd.h>

LIBRARY_TEST(what_one_session_loaded_is_there_for_the_next)
{
	load(&theirs, PLAIN);
	assert_int_equal(launch(&theirs, 0), CUDA_SUCCESS);
	load(&ours, PLAIN);
	assert_int_equal(launch(&ours, 0), CUDA_SUCCESS);

	assert_int_equal(loads, 1);
	assert_int_equal(functions, KERNELS);
	assert_ptr_equal(ant_of(&ours), ant_of(&theirs));
	assert_string_equal(ours.session.progress.kernel, "ant");
	assert_int_equal(gpd_library_counts.loaded, 1);
	assert_int_equal(gpd_library_counts.shared, 1);
	assert_int_equal(gpd_library_counts.own, 0);
}

LIBRARY_TEST(code_stays_loaded_when_nobody_uses_it)
{
	load(&theirs, PLAIN);
	gpd_image_destroy_all(&theirs.session);
	gpd_quiesce_jobs_wait();
	gpd_library_trim();
	gpd_quiesce_jobs_wait();
	load(&ours, PLAIN);

	assert_int_equal(loads, 1);
	assert_int_equal(unloads, 0);
}

LIBRARY_TEST(code_with_variables_is_each_sessions_own)
{
	load(&theirs, COUNTER);
	load(&ours, COUNTER);

	assert_int_equal(loads, 2);
	assert_ptr_not_equal(ant_of(&ours), ant_of(&theirs));
	gpd_image_destroy_all(&theirs.session);
	gpd_quiesce_jobs_wait();
	assert_int_equal(unloads, 1);
}

LIBRARY_TEST(code_loaded_with_options_is_the_images_own)
{
	const struct {
		uint32_t option, zero;
		uint64_t value;
	} options[] = { { CU_JIT_MAX_REGISTERS, 0, 32 } };

	load(&theirs, PLAIN);
	assert_int_equal(
		try_load(&ours, IMAGE, PLAIN, (struct gp_bytes){ options, sizeof(options) }),
		CUDA_SUCCESS);

	assert_int_equal(loads, 2);
	assert_int_equal(gpd_library_counts.own, 1);
}

static void
load_and_leave(const char *text)
{
	load(&theirs, text);
	gpd_image_destroy_all(&theirs.session);
	gpd_quiesce_jobs_wait();
}

LIBRARY_TEST(what_was_used_last_stays_and_the_rest_goes)
{
	gpd_library_unused_count = 2;
	load_and_leave(PLAIN);
	load_and_leave(OTHER);
	load_and_leave(PLAIN);
	assert_int_equal(unloads, 0);
	load_and_leave(THIRD);

	assert_int_equal(unloads, 1);
	load_and_leave(PLAIN);
	assert_int_equal(loads, 3);
	load_and_leave(OTHER);
	assert_int_equal(loads, 4);
}

LIBRARY_TEST(bytes_count_as_well)
{
	gpd_library_unused_bytes = 1;
	load_and_leave(PLAIN);

	assert_int_equal(unloads, 1);
}

LIBRARY_TEST(a_text_counts_for_more_than_its_bytes)
{
	gpd_library_unused_bytes = 1000;
	load_and_leave(PLAIN);

	assert_int_equal(unloads, 1);
}

static void *
load_theirs(void *arg)
{
	*(CUresult *)arg = try_load(&theirs, IMAGE, PLAIN, (struct gp_bytes){ 0 });
	return NULL;
}

/* Both sessions load the same, and are let go when one of them loads. */
static CUresult
load_at_once(CUresult *second_p)
{
	pthread_t thread;
	CUresult first;
	sem_t open;

	sem_init(&open, 0, 0);
	gate = &open;
	assert_int_equal(pthread_create(&thread, NULL, load_theirs, second_p), 0);
	while (loads == 0)
		sched_yield();
	sem_post(&open);
	sem_post(&open);
	first = try_load(&ours, IMAGE, PLAIN, (struct gp_bytes){ 0 });
	pthread_join(thread, NULL);
	gate = NULL;
	sem_destroy(&open);
	return first;
}

LIBRARY_TEST(of_two_sessions_that_load_at_once_one_waits_for_the_other)
{
	CUresult second;

	assert_int_equal(load_at_once(&second), CUDA_SUCCESS);
	assert_int_equal(second, CUDA_SUCCESS);
	assert_int_equal(loads, 1);
	assert_int_equal(functions, KERNELS);
	assert_ptr_equal(ant_of(&ours), ant_of(&theirs));
}

LIBRARY_TEST(code_that_could_not_be_loaded_is_tried_again)
{
	load_result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(try_load(&theirs, IMAGE, PLAIN, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_OUT_OF_MEMORY);
	load_result = CUDA_SUCCESS;
	load(&theirs, PLAIN);
	load(&ours, PLAIN);

	assert_int_equal(loads, 2);
}

static CUresult
record(CUcontext context, CUevent event)
{
	return CUDA_SUCCESS;
}

LIBRARY_TEST(beside_work_that_does_not_end_nothing_is_unloaded)
{
	const uint64_t limit_ns = gpd_quiesce_limit_ns, short_ns = gpd_quiesce_short_ns;

	gpd_driver.cuCtxRecordEvent = record;
	gpd_quiesce_limit_ns = gpd_quiesce_short_ns = 1000000;
	load(&theirs, COUNTER);
	fake_driver_events_pending = true;
	gpd_image_destroy_all(&theirs.session);
	usleep(100000);
	assert_int_equal(unloads, 0);

	fake_driver_events_pending = false;
	gpd_quiesce_jobs_wait();
	assert_int_equal(unloads, 1);
	gpd_quiesce_limit_ns = limit_ns;
	gpd_quiesce_short_ns = short_ns;
}

static struct gpd_ledger_line *
code_of(struct fake_session *fake)
{
	return &fake->session.account.entry->devices[GPD_LEDGER_CODE];
}

/* A load finds a nearly idle device even if kernels run forever. */
LIBRARY_TEST(what_waits_to_be_unloaded_counts_and_goes_at_the_next_load)
{
	const uint64_t limit_ns = gpd_quiesce_limit_ns, short_ns = gpd_quiesce_short_ns;
	uint64_t bytes;

	gpd_driver.cuCtxRecordEvent = record;
	gpd_quiesce_limit_ns = gpd_quiesce_short_ns = 1000000;
	load(&theirs, COUNTER);
	bytes = code_of(&theirs)->memory;
	assert_int_not_equal(bytes, 0);
	fake_driver_events_pending = true;
	gpd_gpImageUnload(&theirs.session, &(struct gp_args_gpImageUnload){ IMAGE });
	fake_session_run_markers(&theirs, -1);
	usleep(20000);
	assert_int_equal(unloads, 0);
	assert_int_equal(code_of(&theirs)->memory, bytes);

	fake_driver_events_pending = false;
	load(&ours, OTHER);
	gpd_quiesce_jobs_wait();
	assert_int_equal(unloads, 1);
	assert_int_equal(code_of(&theirs)->memory, 0);
	gpd_quiesce_limit_ns = limit_ns;
	gpd_quiesce_short_ns = short_ns;
}

LIBRARY_TEST(code_counts_for_each_session_that_has_loaded_it)
{
	struct gpd_ledger_tenant_line *tenant;
	uint64_t bytes;

	load(&theirs, PLAIN);
	bytes = code_of(&theirs)->memory;
	tenant = &ours.ledger->tenants[GPD_TENANT_DEFAULT].devices[GPD_LEDGER_CODE];
	tenant->memory_max = bytes - 1;
	assert_int_equal(try_load(&ours, IMAGE, PLAIN, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(code_of(&ours)->memory, 0);
	tenant->memory_max = bytes;
	load(&ours, PLAIN);
	assert_int_equal(code_of(&ours)->memory, bytes);
	/* Unloaded images make room for the next load. */
	gpd_gpImageUnload(&ours.session, &(struct gp_args_gpImageUnload){ IMAGE });
	fake_session_run_markers(&ours, -1);
	load(&ours, PLAIN);
	assert_int_equal(tenant->memory, bytes);

	/* What cannot be loaded does not count. */
	load_result = CUDA_ERROR_OUT_OF_MEMORY;
	tenant->memory_max = GPD_NO_LIMIT;
	assert_int_equal(try_load(&ours, IMAGE + 1, OTHER, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(tenant->memory, bytes);
	gpd_image_destroy_all(&ours.session);
	assert_int_equal(tenant->memory, 0);
}

static CUresult
get_no_param(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The driver may need the kernel's code for that, and memory for the code. */
LIBRARY_TEST(what_cannot_be_asked_for_lack_of_memory_is_not_loaded)
{
	gpd_driver.cuKernelGetParamInfo = get_no_param;
	assert_int_equal(try_load(&ours, IMAGE, PLAIN, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(loads, 1);
	assert_int_equal(unloads, 1);
	gpd_driver.cuKernelGetParamInfo = library_get_param;
	load(&ours, PLAIN);
	assert_int_equal(loads, 2);
}

struct waiter {
	pthread_t thread;
	struct gpd_library *library;
	uint32_t kernel;
	CUresult result;
};

static void *
wait_for_turn(void *arg)
{
	struct waiter *waiter = arg;
	struct gpd_function *function;

	waiter->result =
		gpd_library_function(&ours.session, waiter->library, waiter->kernel, 0, &function);
	return NULL;
}

static void
begin(struct waiter *waiter)
{
	assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_turn, waiter), 0);
}

static void
end(struct waiter *waiter)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	assert_int_equal(waiter->result, CUDA_SUCCESS);
}

/* As the image of a library of many kernels does, of which loading it loads none. */
static void
make_lazy(struct gpd_library *library)
{
	library->driver_size = 8 << 20;
	library->unpacked[0] = false;
	for (int i = 0; i < KERNELS; i++)
		atomic_store(&atomic_load(&library->functions[0])[i].driver, NULL);
}

LIBRARY_TEST(what_the_driver_unpacks_late_takes_a_turn_as_well)
{
	struct gpd_unpacking other;
	struct gpd_device_kernel device_kernel;
	struct waiter waiter = { .kernel = 0 };

	load(&ours, PLAIN);
	assert_int_equal(gpd_image_kernel(&ours.session, (uint64_t)IMAGE << 32, 0, &device_kernel),
			 CUDA_SUCCESS);
	waiter.library = device_kernel.image->library;
	make_lazy(waiter.library);
	functions = 0;
	assert_true(gpd_unpacking_begin(&other, &theirs.session, 8 << 20));
	begin(&waiter);
	usleep(50000);
	assert_int_equal(functions, 0);
	/* No session is stopped meanwhile. */
	assert_int_equal(ours.session.loading_since_ms, 0);
	gpd_unpacking_end(&other);
	end(&waiter);
	assert_int_equal(functions, 1);
	/* The rest is unpacked by then and does not wait. */
	assert_true(gpd_unpacking_begin(&other, &theirs.session, 8 << 20));
	waiter.kernel = 1;
	begin(&waiter);
	end(&waiter);
	assert_int_equal(functions, 2);
	gpd_unpacking_end(&other);
}

UNIT_TEST_MAIN(NULL, NULL)
