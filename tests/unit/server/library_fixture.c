/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/server/library_fixture.h"

#include "image/fatbin.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/sessions.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct fake_session ours, theirs;
sem_t *gate;
_Atomic int loads, unloads, functions;
_Atomic CUresult load_result;

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
	fake_driver_libraries++;
	return CUDA_SUCCESS;
}

static CUresult
unload_data(CUlibrary library)
{
	unloads++;
	fake_driver_libraries--;
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

CUresult
library_get_param(CUkernel kernel, size_t index, size_t *offset, size_t *size)
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

/* The number of blocks that fit on ten multiprocessors. Clusters of more than four blocks are not
 * supported. */
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

int
library_setup(void **state)
{
	fake_session_create(&theirs);
	fake_session_create(&ours);
	if (gpd_memory_create(&theirs.session) || gpd_memory_create(&ours.session))
		return -1;
	gpd_driver.cuLibraryLoadData = load_data;
	gpd_driver.cuLibraryUnload = unload_data;
	gpd_driver.cuLibraryEnumerateKernels = enumerate;
	gpd_driver.cuLibraryGetGlobal = get_global;
	gpd_driver.cuKernelGetName = get_name;
	gpd_driver.cuKernelGetFunction = get_function;
	gpd_driver.cuKernelGetParamInfo = library_get_param;
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

int
library_teardown(void **state)
{
	fake_session_run_markers(&ours, -1);
	fake_session_run_markers(&theirs, -1);
	gpd_image_destroy_all(&ours.session);
	gpd_image_destroy_all(&theirs.session);
	gpd_quiesce_jobs_wait();
	gpd_library_unused_count = 0;
	gpd_library_trim();
	gpd_quiesce_jobs_wait();
	gpd_sessions.count = 0;
	gpd_memory_destroy(&ours.session);
	gpd_memory_destroy(&theirs.session);
	fake_session_destroy(&ours);
	fake_session_destroy(&theirs);
	gpd_image_cache_stop();
	return fake_driver_libraries;
}

CUresult
try_load(struct fake_session *fake, uint32_t name, const char *text, struct gp_bytes options)
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
	fake->session.current.bulk_left = size;
	result = gpd_gpImageLoad(&fake->session, &args, &reply);
	free(flat);
	free((void *)reply.info.data);
	free((void *)reply.log.data);
	return result;
}

void
load(struct fake_session *fake, const char *text)
{
	assert_int_equal(try_load(fake, IMAGE, text, (struct gp_bytes){ 0 }), CUDA_SUCCESS);
}

struct kernel *
ant_of(struct fake_session *fake)
{
	CUfunction function;

	assert_int_equal(gpd_function_get(&fake->session, GP_KERNEL(IMAGE, 0), &function),
			 CUDA_SUCCESS);
	return (struct kernel *)function;
}

CUresult
launch(struct fake_session *fake, uint32_t dynamic)
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
