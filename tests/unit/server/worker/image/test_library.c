/* SPDX-License-Identifier: Apache-2.0 */
/* Device code that several sessions use, and what each sets of its kernels. */
#include "gpd_calls.h"
#include "image/fatbin.h"
#include "protocol/image_info.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiet.h"
#include "server/worker/device/quiet_jobs.h"
#include "server/worker/image/image.h"
#include "server/worker/image/library.h"
#include "server/worker/session/sessions.h"
#include "tests/test.h"
#include "tests/unit/server/server_fake.h"

#include <endian.h>
#include <limits.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IMAGE 8
#define KERNELS 2
#define DYNAMIC 49152
#define PLAIN ".version 8.0\n.visible .entry ant()\n"
#define OTHER ".version 8.1\n.visible .entry ant()\n"
#define THIRD ".version 8.2\n.visible .entry ant()\n"
#define COUNTER ".version 8.0\n.global .u32 counter;\n"

/* What the driver keeps of a kernel; CUkernel and CUfunction point to it. */
struct kernel {
	const char *name;
	int dynamic, carveout, config;
};

struct library {
	struct kernel kernels[KERNELS];
};

static struct fake ours, theirs;
/* While it is set, loading waits for it. */
static sem_t *gate;
static _Atomic int loads, unloads, functions;
static _Atomic CUresult load_result;

static CUresult
load_data(CUlibrary *library, const void *code, CUjit_option *options, void **values,
	  unsigned int count, CUlibraryOption *library_options, void **library_values,
	  unsigned int library_count)
{
	struct library *made = calloc(1, sizeof(*made));

	loads++;
	if (gate)
		sem_wait(gate);
	if (load_result != CUDA_SUCCESS) {
		free(made);
		return load_result;
	}
	for (int i = 0; i < KERNELS; i++)
		made->kernels[i] = (struct kernel){ i ? "ant" : "zebra", DYNAMIC, -1, 0 };
	*library = (CUlibrary)made;
	fake_libraries++;
	return CUDA_SUCCESS;
}

static CUresult
unload_data(CUlibrary library)
{
	unloads++;
	fake_libraries--;
	free(library);
	return CUDA_SUCCESS;
}

static CUresult
enumerate(CUkernel *kernels, unsigned int count, CUlibrary library)
{
	for (unsigned int i = 0; i < count; i++)
		kernels[i] = (CUkernel) & ((struct library *)library)->kernels[i];
	return CUDA_SUCCESS;
}

static CUresult
get_name(const char **name, CUkernel kernel)
{
	*name = ((struct kernel *)kernel)->name;
	return CUDA_SUCCESS;
}

static CUresult
get_function(CUfunction *function, CUkernel kernel)
{
	functions++;
	*function = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

static CUresult
get_param(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	return CUDA_ERROR_INVALID_VALUE;
}

static int *
field_of(CUfunction function, CUfunction_attribute attribute)
{
	struct kernel *kernel = (struct kernel *)function;

	return attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? &kernel->dynamic
									    : &kernel->carveout;
}

static CUresult
get_attribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	*value = *field_of(function, attribute);
	return CUDA_SUCCESS;
}

static CUresult
set_attribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	if (value > 100000)
		return CUDA_ERROR_INVALID_VALUE;
	*field_of(function, attribute) = value;
	return CUDA_SUCCESS;
}

static CUresult
set_cache_config(CUfunction function, CUfunc_cache config)
{
	((struct kernel *)function)->config = (int)config;
	return CUDA_SUCCESS;
}

static CUresult
count_blocks(int *blocks, CUfunction function, int threads, size_t dynamic, unsigned int flags)
{
	*blocks = dynamic <= (size_t)((struct kernel *)function)->dynamic ? 7 : 0;
	return CUDA_SUCCESS;
}

/* As many as fit on ten multiprocessors; of more than four blocks none are allowed. */
static CUresult
count_clusters(int *clusters, CUfunction function, const CUlaunchConfig *config)
{
	const CUlaunchAttribute *last = &config->attrs[config->numAttrs - 1];

	assert_int_equal(last->id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
	assert_int_equal(last->value.clusterDim.x, config->gridDimX);
	assert_int_equal(last->value.clusterDim.y * last->value.clusterDim.z, 1);
	if (config->sharedMemBytes > (unsigned int)((struct kernel *)function)->dynamic)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	if (config->gridDimX > 4)
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	*clusters = 10 / (int)config->gridDimX;
	return CUDA_SUCCESS;
}

static CUresult
get_global(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
	if (strcmp(name, "$str"))
		return CUDA_ERROR_NOT_FOUND;
	*address = (CUdeviceptr)(uintptr_t)library;
	*size = 4;
	return CUDA_SUCCESS;
}

static int
setup(void **state)
{
	fake_create(&theirs);
	fake_create(&ours);
	gpd_driver.cuLibraryLoadData = load_data;
	gpd_driver.cuLibraryUnload = unload_data;
	gpd_driver.cuLibraryEnumerateKernels = enumerate;
	gpd_driver.cuLibraryGetGlobal = get_global;
	gpd_driver.cuKernelGetName = get_name;
	gpd_driver.cuKernelGetFunction = get_function;
	gpd_driver.cuKernelGetParamInfo = get_param;
	gpd_driver.cuFuncGetAttribute = get_attribute;
	gpd_driver.cuFuncSetAttribute = set_attribute;
	gpd_driver.cuFuncSetCacheConfig = set_cache_config;
	gpd_driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = count_blocks;
	gpd_driver.cuOccupancyMaxActiveClusters = count_clusters;
	loads = unloads = functions = 0;
	load_result = CUDA_SUCCESS;
	gpd_library_unused_count = 4096;
	gpd_library_unused_bytes = 512 << 20;
	gpd_library_counts.loaded = gpd_library_counts.shared = gpd_library_counts.own = 0;
	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ 0, 0 });
	return 0;
}

static int
teardown(void **state)
{
	fake_run_markers(&ours, -1);
	fake_run_markers(&theirs, -1);
	gpd_image_forget_session(&ours.session);
	gpd_image_forget_session(&theirs.session);
	gpd_quiet_jobs_wait();
	gpd_library_unused_count = 0;
	gpd_library_trim();
	gpd_quiet_jobs_wait();
	gpd_sessions.count = 0;
	fake_destroy(&ours);
	fake_destroy(&theirs);
	gpd_image_cache_stop();
	return fake_libraries;
}

static CUresult
try_load(struct fake *fake, uint32_t name, const char *text, struct gp_bytes options)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	struct gp_args_gpImageLoad args = {
		.context = FAKE_CONTEXT,
		.image = name,
		.sha256 = { sha256, sizeof(sha256) },
		.options = options,
	};
	struct gp_reply_gpImageLoad reply = { 0 };
	struct gp_image *image;
	CUresult result;
	void *flat;
	size_t size;

	assert_int_equal(gp_image_create(text, &image), 0);
	assert_int_equal(gp_image_flatten(image, NULL, &flat, &size), 0);
	gp_image_destroy(image);
	EVP_Digest(flat, size, sha256, NULL, EVP_sha256(), NULL);
	args.size = size;
	fake->bulk = flat;
	fake->session.bulk_left = size;
	result = gpd_gpImageLoad(&fake->session, &args, &reply);
	free(flat);
	free((void *)reply.info.data);
	free((void *)reply.log.data);
	return result;
}

static void
load(struct fake *fake, const char *text)
{
	assert_int_equal(try_load(fake, IMAGE, text, (struct gp_bytes){ 0 }), CUDA_SUCCESS);
}

static struct kernel *
ant_of(struct fake *fake)
{
	CUfunction function;

	assert_int_equal(gpd_function_get(&fake->session, GP_KERNEL(IMAGE, 0), &function),
			 CUDA_SUCCESS);
	return (struct kernel *)function;
}

static CUresult
launch(struct fake *fake, uint32_t dynamic)
{
	const struct gp_args_gpLaunch args = {
		.kernel = GP_KERNEL(IMAGE, 0),
		.grid_x = 1,
		.grid_y = 1,
		.grid_z = 1,
		.block_x = 1,
		.block_y = 1,
		.block_z = 1,
		.shared = dynamic,
		.stream = FAKE_STREAM,
	};

	return gpd_gpLaunch(&fake->session, &args);
}

static CUresult
set(struct fake *fake, CUfunction_attribute attribute, int value)
{
	const struct gp_args_cuFuncSetAttribute args = {
		.hfunc = GP_KERNEL(IMAGE, 0),
		.attrib = (int32_t)attribute,
		.value = value,
	};

	return gpd_cuFuncSetAttribute(&fake->session, &args);
}

static CUresult
set_dynamic(struct fake *fake, int bytes)
{
	return set(fake, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}

static int
attribute_of(struct fake *fake, CUfunction_attribute attribute)
{
	const struct gp_args_cuFuncGetAttribute args = {
		.hfunc = GP_KERNEL(IMAGE, 0),
		.attrib = (int32_t)attribute,
	};
	struct gp_reply_cuFuncGetAttribute reply;

	assert_int_equal(gpd_cuFuncGetAttribute(&fake->session, &args, &reply), CUDA_SUCCESS);
	return reply.pi;
}

/* All at once. */
static void
attributes_are(struct fake *fake, int dynamic)
{
	const struct gp_args_gpFunctionAttributes args = { .kernel = GP_KERNEL(IMAGE, 0) };
	struct gp_reply_gpFunctionAttributes reply = { 0 };
	uint32_t values[GP_KERNEL_ATTRIBUTES];

	assert_int_equal(gpd_gpFunctionAttributes(&fake->session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.values.size, sizeof(values));
	memcpy(values, reply.values.data, sizeof(values));
	free((void *)reply.values.data);
	for (int i = 0; i < GP_KERNEL_ATTRIBUTES; i++) {
		if (reply.known >> i & 1)
			assert_true((int)le32toh(values[i]) ==
				    attribute_of(fake, (CUfunction_attribute)i));
	}
	assert_true(reply.known >> CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES & 1);
	assert_int_equal(le32toh(values[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES]), dynamic);
}

static int
dynamic_of(struct fake *fake)
{
	return attribute_of(fake, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
}

static int
blocks_of(struct fake *fake, size_t dynamic)
{
	const struct gp_args_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags args = {
		.func = GP_KERNEL(IMAGE, 0),
		.blockSize = 32,
		.dynamicSMemSize = dynamic,
	};
	struct gp_reply_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags reply;

	assert_int_equal(gpd_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&fake->session,
										  &args, &reply),
			 CUDA_SUCCESS);
	return reply.numBlocks;
}

static void
what_one_session_loaded_is_there_for_the_next(void **state)
{
	load(&theirs, PLAIN);
	assert_int_equal(launch(&theirs, 0), CUDA_SUCCESS);
	load(&ours, PLAIN);
	assert_int_equal(launch(&ours, 0), CUDA_SUCCESS);

	assert_int_equal(loads, 1);
	assert_int_equal(functions, KERNELS);
	assert_ptr_equal(ant_of(&ours), ant_of(&theirs));
	assert_string_equal(ours.session.kernel, "ant");
	assert_int_equal(gpd_library_counts.loaded, 1);
	assert_int_equal(gpd_library_counts.shared, 1);
	assert_int_equal(gpd_library_counts.own, 0);
}

static void
code_stays_loaded_when_nobody_uses_it(void **state)
{
	load(&theirs, PLAIN);
	gpd_image_forget_session(&theirs.session);
	gpd_quiet_jobs_wait();
	gpd_library_trim();
	gpd_quiet_jobs_wait();
	load(&ours, PLAIN);

	assert_int_equal(loads, 1);
	assert_int_equal(unloads, 0);
}

static void
code_with_variables_is_each_sessions_own(void **state)
{
	load(&theirs, COUNTER);
	load(&ours, COUNTER);

	assert_int_equal(loads, 2);
	assert_ptr_not_equal(ant_of(&ours), ant_of(&theirs));
	gpd_image_forget_session(&theirs.session);
	gpd_quiet_jobs_wait();
	assert_int_equal(unloads, 1);
}

static void
code_loaded_with_options_is_the_images_own(void **state)
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
	gpd_image_forget_session(&theirs.session);
	gpd_quiet_jobs_wait();
}

static void
what_was_used_last_stays_and_the_rest_goes(void **state)
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

static void
bytes_count_as_well(void **state)
{
	gpd_library_unused_bytes = 1;
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

static void
of_two_sessions_that_load_at_once_one_waits_for_the_other(void **state)
{
	CUresult second;

	assert_int_equal(load_at_once(&second), CUDA_SUCCESS);
	assert_int_equal(second, CUDA_SUCCESS);
	assert_int_equal(loads, 1);
	assert_int_equal(functions, KERNELS);
	assert_ptr_equal(ant_of(&ours), ant_of(&theirs));
}

static void
code_that_could_not_be_loaded_is_tried_again(void **state)
{
	load_result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(try_load(&theirs, IMAGE, PLAIN, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_OUT_OF_MEMORY);
	load_result = CUDA_SUCCESS;
	load(&theirs, PLAIN);
	load(&ours, PLAIN);

	assert_int_equal(loads, 2);
}

static void
each_session_reads_the_shared_memory_that_it_allowed(void **state)
{
	load(&theirs, PLAIN);
	load(&ours, PLAIN);
	assert_int_equal(set_dynamic(&theirs, 90000), CUDA_SUCCESS);

	assert_int_equal(dynamic_of(&theirs), 90000);
	assert_int_equal(dynamic_of(&ours), DYNAMIC);
	assert_int_equal(set_dynamic(&ours, 60000), CUDA_SUCCESS);
	assert_int_equal(dynamic_of(&ours), 60000);
	assert_int_equal(dynamic_of(&theirs), 90000);
	attributes_are(&ours, 60000);
	attributes_are(&theirs, 90000);
	assert_int_equal(ant_of(&ours)->dynamic, 90000);
	assert_int_equal(set_dynamic(&ours, 100001), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(set_dynamic(&ours, -1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(dynamic_of(&ours), 60000);
	assert_int_equal(loads, 1);
}

static void
a_launch_beyond_what_the_session_allowed_is_refused(void **state)
{
	load(&theirs, PLAIN);
	load(&ours, PLAIN);
	set_dynamic(&theirs, 90000);
	fake_forget_calls();

	assert_int_equal(launch(&theirs, 90000), CUDA_SUCCESS);
	assert_int_equal(launch(&ours, DYNAMIC), CUDA_SUCCESS);
	assert_int_equal(launch(&ours, DYNAMIC + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(set_dynamic(&ours, 100), CUDA_SUCCESS);
	assert_int_equal(launch(&ours, 101), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(&ours, 100), CUDA_SUCCESS);
	assert_int_equal(launch(&theirs, 90000), CUDA_SUCCESS);
	assert_int_equal(fake_count_calls("cuLaunchKernelEx"), 4);
}

static void
what_else_is_set_is_set_on_code_of_ones_own(void **state)
{
	struct kernel *shared;

	load(&theirs, PLAIN);
	load(&ours, PLAIN);
	set_dynamic(&ours, 70000);
	shared = ant_of(&ours);
	assert_int_equal(set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50),
			 CUDA_SUCCESS);

	assert_int_equal(loads, 2);
	assert_ptr_not_equal(ant_of(&ours), shared);
	assert_ptr_equal(ant_of(&theirs), shared);
	assert_int_equal(shared->carveout, -1);
	assert_int_equal(ant_of(&ours)->carveout, 50);
	assert_int_equal(ant_of(&ours)->dynamic, 70000);
	assert_int_equal(dynamic_of(&ours), 70000);
	assert_int_equal(launch(&ours, 70000), CUDA_SUCCESS);
	assert_string_equal(ours.session.kernel, "ant");
	assert_int_equal(set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 60),
			 CUDA_SUCCESS);
	assert_int_equal(loads, 2);
	assert_int_equal(unloads, 0);
}

static void
attributes_that_there_are_not_do_not_reach_the_driver(void **state)
{
	static const int none[] = { -1, INT_MIN, CU_FUNC_ATTRIBUTE_MAX, 1 << 30 };
	struct gp_args_cuFuncGetAttribute args = { .hfunc = GP_KERNEL(IMAGE, 0) };
	struct gp_reply_cuFuncGetAttribute reply;

	load(&ours, PLAIN);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		args.attrib = none[i];
		assert_int_equal(gpd_cuFuncGetAttribute(&ours.session, &args, &reply),
				 CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(set(&ours, (CUfunction_attribute)none[i], 1),
				 CUDA_ERROR_INVALID_VALUE);
	}
	assert_int_equal(gpd_library_counts.own, 0);
}

static void
code_of_ones_own_leaves_with_its_image(void **state)
{
	load(&ours, PLAIN);
	set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
	gpd_gpImageUnload(&ours.session, &(struct gp_args_gpImageUnload){ IMAGE });
	assert_int_equal(unloads, 0);
	fake_run_markers(&ours, -1);
	gpd_quiet_jobs_wait();

	assert_int_equal(unloads, 1);
	assert_int_equal(fake_libraries, 1);
}

static CUresult
record(CUcontext context, CUevent event)
{
	return CUDA_SUCCESS;
}

static void
beside_work_that_does_not_end_nothing_is_unloaded(void **state)
{
	const uint64_t limit_ns = gpd_quiet_limit_ns, short_ns = gpd_quiet_short_ns;

	gpd_driver.cuCtxRecordEvent = record;
	gpd_quiet_limit_ns = gpd_quiet_short_ns = 1000000;
	load(&theirs, COUNTER);
	fake_events_pending = true;
	gpd_image_forget_session(&theirs.session);
	usleep(100000);
	assert_int_equal(unloads, 0);

	fake_events_pending = false;
	gpd_quiet_jobs_wait();
	assert_int_equal(unloads, 1);
	gpd_quiet_limit_ns = limit_ns;
	gpd_quiet_short_ns = short_ns;
}

static struct gpd_ledger_line *
code_of(struct fake *fake)
{
	return &fake->session.account.line->devices[GPD_LEDGER_CODE];
}

/* Beside kernels that do not end, too, whoever loads finds a quiet moment of its device. */
static void
what_waits_to_be_unloaded_counts_and_goes_at_the_next_load(void **state)
{
	const uint64_t limit_ns = gpd_quiet_limit_ns, short_ns = gpd_quiet_short_ns;
	uint64_t bytes;

	gpd_driver.cuCtxRecordEvent = record;
	gpd_quiet_limit_ns = gpd_quiet_short_ns = 1000000;
	load(&theirs, COUNTER);
	bytes = code_of(&theirs)->memory;
	assert_int_not_equal(bytes, 0);
	fake_events_pending = true;
	gpd_gpImageUnload(&theirs.session, &(struct gp_args_gpImageUnload){ IMAGE });
	fake_run_markers(&theirs, -1);
	usleep(20000);
	assert_int_equal(unloads, 0);
	assert_int_equal(code_of(&theirs)->memory, bytes);

	fake_events_pending = false;
	load(&ours, OTHER);
	gpd_quiet_jobs_wait();
	assert_int_equal(unloads, 1);
	assert_int_equal(code_of(&theirs)->memory, 0);
	gpd_quiet_limit_ns = limit_ns;
	gpd_quiet_short_ns = short_ns;
}

static void
code_counts_for_each_session_that_has_loaded_it(void **state)
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
	/* What has been unloaded goes for what is loaded next. */
	gpd_gpImageUnload(&ours.session, &(struct gp_args_gpImageUnload){ IMAGE });
	fake_run_markers(&ours, -1);
	load(&ours, PLAIN);
	assert_int_equal(tenant->memory, bytes);

	/* What cannot be loaded does not count. */
	load_result = CUDA_ERROR_OUT_OF_MEMORY;
	tenant->memory_max = GPD_NO_LIMIT;
	assert_int_equal(try_load(&ours, IMAGE + 1, OTHER, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(tenant->memory, bytes);
	gpd_image_forget_session(&ours.session);
	assert_int_equal(tenant->memory, 0);
}

static CUresult
get_no_param(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The driver may need the kernel's code for that, and memory for the code. */
static void
what_cannot_be_asked_for_lack_of_memory_is_not_loaded(void **state)
{
	gpd_driver.cuKernelGetParamInfo = get_no_param;
	assert_int_equal(try_load(&ours, IMAGE, PLAIN, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(loads, 1);
	assert_int_equal(unloads, 1);
	gpd_driver.cuKernelGetParamInfo = get_param;
	load(&ours, PLAIN);
	assert_int_equal(loads, 2);
}

static void
setting_what_is_so_already_costs_nothing(void **state)
{
	const struct gp_args_cuFuncSetCacheConfig none = { GP_KERNEL(IMAGE, 0),
							   CU_FUNC_CACHE_PREFER_NONE };
	const struct gp_args_cuFuncSetCacheConfig some = { GP_KERNEL(IMAGE, 0),
							   CU_FUNC_CACHE_PREFER_L1 };

	load(&ours, PLAIN);
	assert_int_equal(set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_cuFuncSetCacheConfig(&ours.session, &none), CUDA_SUCCESS);
	assert_int_equal(loads, 1);

	assert_int_equal(gpd_cuFuncSetCacheConfig(&ours.session, &some), CUDA_SUCCESS);
	assert_int_equal(loads, 2);
	assert_int_equal(ant_of(&ours)->config, CU_FUNC_CACHE_PREFER_L1);
}

static void
without_code_of_its_own_a_session_keeps_the_shared(void **state)
{
	load(&ours, PLAIN);
	set_dynamic(&ours, 70000);
	load_result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50),
			 CUDA_ERROR_OUT_OF_MEMORY);

	assert_int_equal(dynamic_of(&ours), 70000);
	assert_int_equal(launch(&ours, 70000), CUDA_SUCCESS);
}

static void
occupancy_is_that_of_what_the_session_allowed(void **state)
{
	load(&theirs, PLAIN);
	load(&ours, PLAIN);
	assert_int_equal(blocks_of(&ours, DYNAMIC), 7);
	assert_int_equal(blocks_of(&ours, DYNAMIC + 1), 0);
	set_dynamic(&theirs, 90000);
	assert_int_equal(blocks_of(&ours, DYNAMIC), 7);
	assert_int_equal(loads, 1);

	assert_int_equal(blocks_of(&ours, DYNAMIC + 1), 0);
	set_dynamic(&ours, 90000);
	assert_int_equal(blocks_of(&ours, DYNAMIC + 1), 7);
}

static CUresult
ask_clusters(uint32_t sizes, uint32_t shared, unsigned int attribute_count,
	     struct gp_occupancy_clusters *answers)
{
	const CUlaunchAttribute attributes[] = {
		{ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION },
		{ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION },
	};
	const struct gp_args_gpOccupancyClusterSizes args = {
		.sizes = sizes,
		.kernel = GP_KERNEL(IMAGE, 0),
		.block_x = 32,
		.block_y = 1,
		.block_z = 1,
		.shared = shared,
		.attributes = { attributes, attribute_count * sizeof(attributes[0]) },
	};
	struct gp_reply_gpOccupancyClusterSizes reply = { 0 };
	CUresult result = gpd_gpOccupancyClusterSizes(&ours.session, &args, &reply);

	if (result == CUDA_SUCCESS) {
		assert_int_equal(reply.answers.size, sizes * sizeof(answers[0]));
		memcpy(answers, reply.answers.data, reply.answers.size);
	}
	free((void *)reply.answers.data);
	return result;
}

static void
clusters_of_all_sizes_are_one_question(void **state)
{
	struct gp_occupancy_clusters answers[GP_OCCUPANCY_QUESTIONS_MAX];

	load(&ours, PLAIN);
	assert_int_equal(ask_clusters(6, 0, 1, answers), CUDA_SUCCESS);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(le32toh(answers[i].result),
				 i < 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE);
		assert_int_equal(le32toh(answers[i].clusters), i < 4 ? 10 / (i + 1) : 0);
	}
	assert_int_equal(ask_clusters(GP_OCCUPANCY_QUESTIONS_MAX, 0, 1, answers), CUDA_SUCCESS);
	assert_int_equal(ask_clusters(0, 0, 1, answers), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(ask_clusters(GP_OCCUPANCY_QUESTIONS_MAX + 1, 0, 1, answers),
			 CUDA_ERROR_INVALID_VALUE);
	/* Without a cluster, or with two, it is not known what is asked. */
	assert_int_equal(ask_clusters(6, 0, 0, answers), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(ask_clusters(6, 0, 2, answers), CUDA_ERROR_INVALID_VALUE);
	/* A fault is the call's. */
	assert_int_equal(ask_clusters(6, DYNAMIC + 1, 1, answers), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void
shared_code_outlives_the_context_and_what_was_set_does_not(void **state)
{
	load(&ours, PLAIN);
	set_dynamic(&ours, 70000);
	gpd_image_forget_context(&ours.session, &ours.context);

	assert_int_equal(launch(&ours, 100), CUDA_SUCCESS);
	assert_int_equal(dynamic_of(&ours), DYNAMIC);
	assert_int_equal(launch(&ours, 70000), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(loads, 1);
}

static void
code_of_ones_own_starts_anew_with_the_context(void **state)
{
	load(&ours, PLAIN);
	set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
	gpd_image_forget_context(&ours.session, &ours.context);

	assert_int_equal(launch(&ours, 100), CUDA_SUCCESS);
	assert_int_equal(attribute_of(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
			 -1);
	assert_int_equal(loads, 3);
	assert_int_equal(unloads, 1);
}

static void
who_asks_for_a_variable_gets_one_of_its_own(void **state)
{
	struct gp_args_gpImageGlobal args = { FAKE_CONTEXT, IMAGE, { "$str", 4 } };
	struct gp_reply_gpImageGlobal reply;
	struct kernel *shared;

	load(&theirs, PLAIN);
	load(&ours, PLAIN);
	shared = ant_of(&theirs);
	args.name = (struct gp_bytes){ "none", 4 };
	assert_int_equal(gpd_gpImageGlobal(&ours.session, &args, &reply), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(loads, 1);
	args.name = (struct gp_bytes){ "$str", 4 };
	assert_int_equal(gpd_gpImageGlobal(&ours.session, &args, &reply), CUDA_SUCCESS);

	assert_int_equal(loads, 2);
	assert_ptr_equal((void *)reply.address, (struct library *)(ant_of(&ours) - 1));
	assert_ptr_equal(ant_of(&theirs), shared);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_one_session_loaded_is_there_for_the_next),
		TEST(code_stays_loaded_when_nobody_uses_it),
		TEST(code_with_variables_is_each_sessions_own),
		TEST(code_loaded_with_options_is_the_images_own),
		TEST(what_was_used_last_stays_and_the_rest_goes),
		TEST(bytes_count_as_well),
		TEST(of_two_sessions_that_load_at_once_one_waits_for_the_other),
		TEST(code_that_could_not_be_loaded_is_tried_again),
		TEST(each_session_reads_the_shared_memory_that_it_allowed),
		TEST(a_launch_beyond_what_the_session_allowed_is_refused),
		TEST(what_else_is_set_is_set_on_code_of_ones_own),
		TEST(attributes_that_there_are_not_do_not_reach_the_driver),
		TEST(code_of_ones_own_leaves_with_its_image),
		TEST(beside_work_that_does_not_end_nothing_is_unloaded),
		TEST(what_waits_to_be_unloaded_counts_and_goes_at_the_next_load),
		TEST(code_counts_for_each_session_that_has_loaded_it),
		TEST(what_cannot_be_asked_for_lack_of_memory_is_not_loaded),
		TEST(setting_what_is_so_already_costs_nothing),
		TEST(without_code_of_its_own_a_session_keeps_the_shared),
		TEST(occupancy_is_that_of_what_the_session_allowed),
		TEST(clusters_of_all_sizes_are_one_question),
		TEST(shared_code_outlives_the_context_and_what_was_set_does_not),
		TEST(code_of_ones_own_starts_anew_with_the_context),
		TEST(who_asks_for_a_variable_gets_one_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
