/* SPDX-License-Identifier: Apache-2.0 */
/* What is asserted here is part of the tests, in every build. */
#undef NDEBUG
#include "server_fake.h"

#include "protocol/array.h"
#include "server/copy.h"
#include "server/driver.h"
#include "server/quiet.h"
#include "server/retire.h"
#include "server/stream_move.h"
#include "server/wait.h"
#include "server/worker.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MARKERS_MAX 4096
/* How much of fresh memory shows what it was used for before. */
#define LEFT_BEHIND (2 * FAKE_GRANULE)

struct marker {
	gpd_wait_done *done;
	void *arg;
};

struct gpd_wait_queue {
	struct marker markers[MARKERS_MAX];
	unsigned int first, last;
};

char fake_calls[FAKE_TEXT];
_Atomic int fake_chunks;
_Atomic int fake_libraries;
_Atomic int fake_arrays;
_Atomic int fake_textures;
const char *fake_kernel_text;
_Atomic bool fake_events_pending;
struct gpd_worker gpd_worker;
struct gpd_driver gpd_driver;

static size_t calls_size;
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char function[64];
	CUresult result;
	unsigned int skip;
} failure;

void
fake_fail(const char *function, CUresult result, unsigned int skip)
{
	snprintf(failure.function, sizeof(failure.function), "%s", function);
	failure.result = result;
	failure.skip = skip;
}

void
fake_forget_calls(void)
{
	calls_size = 0;
	fake_calls[0] = 0;
}

unsigned int
fake_count_calls(const char *start)
{
	unsigned int count = 0;

	for (const char *line = fake_calls; *line; line = strchr(line, '\n') + 1)
		count += !strncmp(line, start, strlen(start));
	return count;
}

/* Notes a call down; the answer it is to get. */
static CUresult __attribute__((format(printf, 1, 2))) called(const char *format, ...)
{
	CUresult result = CUDA_SUCCESS;
	va_list args;
	char *line;

	pthread_mutex_lock(&calls_lock);
	line = fake_calls + calls_size;
	va_start(args, format);
	calls_size += (size_t)vsnprintf(line, FAKE_TEXT - calls_size, format, args);
	va_end(args);
	assert(calls_size + 2 < FAKE_TEXT);
	fake_calls[calls_size++] = '\n';
	fake_calls[calls_size] = 0;
	if (failure.function[0] && !strncmp(line, failure.function, strlen(failure.function)) &&
	    !failure.skip--) {
		failure.function[0] = 0;
		result = failure.result;
	}
	pthread_mutex_unlock(&calls_lock);
	return result;
}

static CUresult
mem_create(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
	   unsigned long long flags)
{
	CUresult result = called("cuMemCreate %zu device %d handles %d", size, prop->location.id,
				 (int)prop->requestedHandleTypes);

	if (result == CUDA_SUCCESS)
		*handle = (CUmemGenericAllocationHandle)++fake_chunks;
	return result;
}

static CUresult
mem_release(CUmemGenericAllocationHandle handle)
{
	fake_chunks--;
	return called("cuMemRelease");
}

/* Full of what somebody else left there. */
static CUresult
mem_map(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	unsigned long long flags)
{
	CUresult result = called("cuMemMap %llx %zu", address, size);
	void *wanted = (void *)(uintptr_t)address;

	if (result != CUDA_SUCCESS)
		return result;
	assert(mmap(wanted, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1,
		    0) == wanted);
	memset(wanted, 0xee, size < LEFT_BEHIND ? size : LEFT_BEHIND);
	return CUDA_SUCCESS;
}

static CUresult
mem_unmap(CUdeviceptr address, size_t size)
{
	munmap((void *)(uintptr_t)address, size);
	return called("cuMemUnmap %llx %zu", address, size);
}

static CUresult
mem_set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	return called("cuMemSetAccess %llx %zu", address, size);
}

static CUresult
mem_address_reserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint,
		    unsigned long long flags)
{
	*address = hint;
	return called("cuMemAddressReserve %zu", size);
}

static CUresult
mem_address_free(CUdeviceptr address, size_t size)
{
	return called("cuMemAddressFree %zu", size);
}

static CUresult
mem_get_info(size_t *available, size_t *total)
{
	*available = (size_t)6 << 30;
	*total = (size_t)8 << 30;
	return called("cuMemGetInfo");
}

static CUresult
host_alloc(void **memory, size_t size, unsigned int flags)
{
	CUresult result = called("cuMemHostAlloc %zu", size);

	if (result == CUDA_SUCCESS)
		*memory = aligned_alloc(4096, size);
	return result;
}

static CUresult
htod(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	CUresult result = called("cuMemcpyHtoDAsync %llx %zu", dst, size);

	if (result == CUDA_SUCCESS)
		memcpy((void *)(uintptr_t)dst, src, size);
	return result;
}

static CUresult
dtoh(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	CUresult result = called("cuMemcpyDtoHAsync %llx %zu", src, size);

	if (result == CUDA_SUCCESS)
		memcpy(dst, (void *)(uintptr_t)src, size);
	return result;
}

static CUresult
dtod(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	memmove((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size);
	return called("cuMemcpyDtoDAsync %llx %llx %zu", dst, src, size);
}

static CUresult
copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	const uint8_t *src = copy->srcMemoryType == CU_MEMORYTYPE_HOST
				     ? copy->srcHost
				     : (const uint8_t *)(uintptr_t)copy->srcDevice;
	uint8_t *dst = copy->dstMemoryType == CU_MEMORYTYPE_HOST
			       ? copy->dstHost
			       : (uint8_t *)(uintptr_t)copy->dstDevice;

	for (size_t y = 0; y < copy->Height; y++)
		memmove(dst + y * copy->dstPitch, src + y * copy->srcPitch, copy->WidthInBytes);
	return called("cuMemcpy2DAsync %zu x %zu", copy->WidthInBytes, copy->Height);
}

static CUresult
mem_alloc(CUdeviceptr *address, size_t size)
{
	static uint8_t memory[4 << 20] __attribute__((aligned(4096)));

	assert(size <= sizeof(memory));
	*address = (CUdeviceptr)(uintptr_t)memory;
	return called("cuMemAlloc %zu", size);
}

/* An array of the driver's: rows follow each other. */
struct array {
	size_t pitch, height;
	uint8_t memory[];
};

struct mipmap {
	unsigned int count;
	struct array *levels[GP_ARRAY_LEVELS_MAX];
};

/* Full of what somebody else left there. */
static struct array *
make_array(const CUDA_ARRAY3D_DESCRIPTOR *described, unsigned int level)
{
	const struct gp_array_shape shape = { described->Width,
					      described->Height,
					      described->Depth,
					      (uint32_t)described->Format,
					      described->NumChannels,
					      described->Flags,
					      0 };
	struct gp_array_extent extent = gp_array_level(&shape, level);
	size_t size = extent.width * extent.height * extent.depth;
	struct array *array = malloc(sizeof(*array) + size);

	assert(array);
	*array = (struct array){ extent.width, extent.height };
	memset(array->memory, 0xee, size);
	return array;
}

static CUresult
array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *described)
{
	CUresult result = called("cuArray3DCreate %zu x %zu x %zu", described->Width,
				 described->Height, described->Depth);

	if (result != CUDA_SUCCESS)
		return result;
	fake_arrays++;
	*array = (CUarray)make_array(described, 0);
	return CUDA_SUCCESS;
}

static CUresult
array_destroy(CUarray array)
{
	fake_arrays--;
	free(array);
	return called("cuArrayDestroy");
}

static CUresult
mipmap_create(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR *described,
	      unsigned int levels)
{
	CUresult result = called("cuMipmappedArrayCreate %u", levels);
	struct mipmap *mipmap;

	if (result != CUDA_SUCCESS)
		return result;
	mipmap = calloc(1, sizeof(*mipmap));
	assert(mipmap && levels <= GP_ARRAY_LEVELS_MAX);
	mipmap->count = levels;
	for (unsigned int i = 0; i < levels; i++)
		mipmap->levels[i] = make_array(described, i);
	fake_arrays++;
	*handle = (CUmipmappedArray)mipmap;
	return CUDA_SUCCESS;
}

static CUresult
mipmap_destroy(CUmipmappedArray handle)
{
	struct mipmap *mipmap = (struct mipmap *)handle;

	for (unsigned int i = 0; i < mipmap->count; i++)
		free(mipmap->levels[i]);
	free(mipmap);
	fake_arrays--;
	return called("cuMipmappedArrayDestroy");
}

static CUresult
mipmap_level(CUarray *level, CUmipmappedArray handle, unsigned int number)
{
	*level = (CUarray)((struct mipmap *)handle)->levels[number];
	return CUDA_SUCCESS;
}

static CUresult
texture_create(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
	       const CUDA_TEXTURE_DESC *description, const CUDA_RESOURCE_VIEW_DESC *view)
{
	*object = 0x1000 + (unsigned long long)++fake_textures;
	return called("cuTexObjectCreate %d flags %u%s", (int)resource->resType, description->flags,
		      view ? " view" : "");
}

static CUresult
texture_destroy(CUtexObject object)
{
	fake_textures--;
	return called("cuTexObjectDestroy");
}

static CUresult
surface_create(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource)
{
	*object = 0x2000 + (unsigned long long)++fake_textures;
	return called("cuSurfObjectCreate");
}

static CUresult
surface_destroy(CUsurfObject object)
{
	fake_textures--;
	return called("cuSurfObjectDestroy");
}

static CUresult
copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	const struct array *from = (const struct array *)copy->srcArray;
	struct array *to = (struct array *)copy->dstArray;
	bool out = copy->srcMemoryType == CU_MEMORYTYPE_ARRAY;
	bool in = copy->dstMemoryType == CU_MEMORYTYPE_ARRAY;
	const uint8_t *src = copy->srcMemoryType == CU_MEMORYTYPE_HOST
				     ? copy->srcHost
				     : (const uint8_t *)(uintptr_t)copy->srcDevice;
	uint8_t *dst = copy->dstMemoryType == CU_MEMORYTYPE_HOST
			       ? copy->dstHost
			       : (uint8_t *)(uintptr_t)copy->dstDevice;
	size_t src_pitch = out ? from->pitch : copy->srcPitch;
	size_t dst_pitch = in ? to->pitch : copy->dstPitch;
	size_t src_height = out ? from->height : copy->srcHeight;
	size_t dst_height = in ? to->height : copy->dstHeight;

	if (out)
		src = from->memory + copy->srcXInBytes +
		      (copy->srcZ * src_height + copy->srcY) * src_pitch;
	if (in)
		dst = to->memory + copy->dstXInBytes +
		      (copy->dstZ * dst_height + copy->dstY) * dst_pitch;
	for (size_t z = 0; z < copy->Depth; z++)
		for (size_t y = 0; y < copy->Height; y++)
			memmove(dst + (z * dst_height + y) * dst_pitch,
				src + (z * src_height + y) * src_pitch, copy->WidthInBytes);
	return called("cuMemcpy3DAsync %zu x %zu x %zu", copy->WidthInBytes, copy->Height,
		      copy->Depth);
}

static void
fill(CUdeviceptr dst, size_t pitch, const void *element, size_t element_size, size_t width,
     size_t height)
{
	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < width; x++)
			memcpy((uint8_t *)(uintptr_t)dst + y * pitch + x * element_size, element,
			       element_size);
}

static CUresult
set_8(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	fill(dst, 0, &value, 1, count, 1);
	return called("cuMemsetD8Async %llx %zu", dst, count);
}

static CUresult
set_16(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
	fill(dst, 0, &value, 2, count, 1);
	return called("cuMemsetD16Async %llx %zu", dst, count);
}

static CUresult
set_32(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)
{
	/* Pages that are given back read as zeros, and cost nothing. */
	if (value || 4 * count < FAKE_GRANULE)
		fill(dst, 0, &value, 4, count, 1);
	else
		assert(!madvise((void *)(uintptr_t)dst, 4 * count, MADV_DONTNEED));
	return called("cuMemsetD32Async %llx %zu", dst, count);
}

static CUresult
set_2d_8(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
	 CUstream stream)
{
	fill(dst, pitch, &value, 1, width, height);
	return called("cuMemsetD2D8Async %zu x %zu", width, height);
}

static CUresult
set_2d_16(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
	  CUstream stream)
{
	fill(dst, pitch, &value, 2, width, height);
	return called("cuMemsetD2D16Async %zu x %zu", width, height);
}

static CUresult
set_2d_32(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,
	  CUstream stream)
{
	fill(dst, pitch, &value, 4, width, height);
	return called("cuMemsetD2D32Async %zu x %zu", width, height);
}

static CUresult
stream_create(CUstream *stream, unsigned int flags, int priority)
{
	*stream = (CUstream)0x77;
	return called("cuStreamCreateWithPriority flags %u", flags);
}

static CUresult
stream_synchronize(CUstream stream)
{
	const char *text = fake_kernel_text;

	fake_kernel_text = NULL;
	if (text)
		assert(write(STDOUT_FILENO, text, strlen(text)) == (ssize_t)strlen(text));
	return called("cuStreamSynchronize");
}

static CUresult
stream_wait_event(CUstream stream, CUevent event, unsigned int flags)
{
	return called("cuStreamWaitEvent");
}

static CUresult
event_create(CUevent *event, unsigned int flags)
{
	*event = (CUevent)0x88;
	return called("cuEventCreate");
}

static CUresult
event_record(CUevent event, CUstream stream)
{
	return called("cuEventRecord");
}

static CUresult
event_query(CUevent event)
{
	return fake_events_pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult
event_destroy(CUevent event)
{
	return called("cuEventDestroy");
}

static CUresult
library_load(CUlibrary *library, const void *code, CUjit_option *options, void **values,
	     unsigned int count, CUlibraryOption *library_options, void **library_values,
	     unsigned int library_count)
{
	CUresult result = called("cuLibraryLoadData options %u", count);

	for (unsigned int i = 0; result != CUDA_SUCCESS && i < count; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			strcpy(values[i], "line 1: it makes no sense");
	}
	if (result != CUDA_SUCCESS)
		return result;
	*library = (CUlibrary)0x99;
	fake_libraries++;
	return CUDA_SUCCESS;
}

static CUresult
library_unload(CUlibrary library)
{
	fake_libraries--;
	return called("cuLibraryUnload");
}

static const char *const kernel_names[] = { "zebra", "ant" };

static CUresult
kernel_count(unsigned int *count, CUlibrary library)
{
	*count = 2;
	return CUDA_SUCCESS;
}

static CUresult
enumerate(CUkernel *kernels, unsigned int count, CUlibrary library)
{
	for (unsigned int i = 0; i < count; i++)
		kernels[i] = (CUkernel)&kernel_names[i];
	return CUDA_SUCCESS;
}

static CUresult
kernel_name(const char **name, CUkernel kernel)
{
	*name = *(const char *const *)kernel;
	return CUDA_SUCCESS;
}

static CUresult
kernel_function(CUfunction *function, CUkernel kernel)
{
	*function = (CUfunction)kernel;
	return called("cuKernelGetFunction");
}

/* "ant" takes a pointer and an int; "zebra" nothing. */
static CUresult
kernel_param(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	if ((const char *const *)kernel != &kernel_names[1] || index > 1)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = index * 8;
	*size = index ? 4 : 8;
	return CUDA_SUCCESS;
}

static CUresult
function_attribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	*value = 1000 + (int)attribute;
	return CUDA_SUCCESS;
}

static CUresult
library_global(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
	if (strcmp(name, "table"))
		return CUDA_ERROR_NOT_FOUND;
	*address = 0x700000;
	*size = 256;
	return CUDA_SUCCESS;
}

static CUresult
launch(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	size_t size = extra ? *(size_t *)extra[3] : 0;

	return called("cuLaunchKernelEx %s %ux%ux%u %ux%ux%u shared %u attributes %u params %zu",
		      *(const char *const *)function, config->gridDimX, config->gridDimY,
		      config->gridDimZ, config->blockDimX, config->blockDimY, config->blockDimZ,
		      config->sharedMemBytes, config->numAttrs, size);
}

static void
driver_fill(void)
{
	gpd_driver = (struct gpd_driver){
		.cuMemCreate = mem_create,
		.cuMemRelease = mem_release,
		.cuMemMap = mem_map,
		.cuMemUnmap = mem_unmap,
		.cuMemSetAccess = mem_set_access,
		.cuMemAddressReserve = mem_address_reserve,
		.cuMemAddressFree = mem_address_free,
		.cuMemGetInfo_v2 = mem_get_info,
		.cuMemHostAlloc = host_alloc,
		.cuMemcpyHtoDAsync_v2 = htod,
		.cuMemcpyDtoHAsync_v2 = dtoh,
		.cuMemcpyDtoDAsync_v2 = dtod,
		.cuMemcpy2DAsync_v2 = copy_2d,
		.cuMemcpy3DAsync_v2 = copy_3d,
		.cuMemAlloc_v2 = mem_alloc,
		.cuArray3DCreate_v2 = array_create,
		.cuArrayDestroy = array_destroy,
		.cuMipmappedArrayCreate = mipmap_create,
		.cuMipmappedArrayDestroy = mipmap_destroy,
		.cuMipmappedArrayGetLevel = mipmap_level,
		.cuTexObjectCreate = texture_create,
		.cuTexObjectDestroy = texture_destroy,
		.cuSurfObjectCreate = surface_create,
		.cuSurfObjectDestroy = surface_destroy,
		.cuMemsetD8Async = set_8,
		.cuMemsetD16Async = set_16,
		.cuMemsetD32Async = set_32,
		.cuMemsetD2D8Async = set_2d_8,
		.cuMemsetD2D16Async = set_2d_16,
		.cuMemsetD2D32Async = set_2d_32,
		.cuStreamCreateWithPriority = stream_create,
		.cuStreamSynchronize = stream_synchronize,
		.cuStreamWaitEvent = stream_wait_event,
		.cuEventCreate = event_create,
		.cuEventRecord = event_record,
		.cuEventQuery = event_query,
		.cuEventDestroy_v2 = event_destroy,
		.cuLibraryLoadData = library_load,
		.cuLibraryUnload = library_unload,
		.cuLibraryGetKernelCount = kernel_count,
		.cuLibraryEnumerateKernels = enumerate,
		.cuLibraryGetGlobal = library_global,
		.cuKernelGetName = kernel_name,
		.cuKernelGetFunction = kernel_function,
		.cuKernelGetParamInfo = kernel_param,
		.cuFuncGetAttribute = function_attribute,
		.cuLaunchKernelEx = launch,
	};
}

void
fake_create(struct fake *fake)
{
	int fd;

	memset(fake, 0, sizeof(*fake));
	driver_fill();
	fake_forget_calls();
	failure.function[0] = 0;
	fake_events_pending = false;
	gpd_worker.lost = 0;
	gpd_worker.device_count = 2;
	gpd_worker.granularity = FAKE_GRANULE;
	gpd_worker.devices[0].memory = gpd_worker.devices[1].memory = (uint64_t)1 << 40;
	gpd_worker.devices[0].granularity = FAKE_GRANULE;
	gpd_worker.devices[1].granularity = FAKE_GRANULE;
	fake->ledger = gpd_ledger_create(&fd);
	assert(fake->ledger);
	fake->ledger->device_memory[0] = fake->ledger->device_memory[1] =
		gpd_worker.devices[0].memory;
	(void)close(fd);
	fake->session.account.ledger = fake->ledger;
	fake->session.account.line = gpd_ledger_open(fake->ledger, 1, 0, 0);
	fake->session.waits = calloc(1, sizeof(struct gpd_wait_queue));
	fake->session.context = FAKE_CONTEXT;
	fake->stream.driver = (CUstream)0x55;
	fake->other.driver = (CUstream)0x66;
	fake->stream.context = fake->other.context = &fake->context;
	assert(!gpd_handle_add(&fake->session.handles, GPD_KIND_CONTEXT, FAKE_CONTEXT,
			       &fake->context.handle));
	assert(!gpd_handle_add(&fake->session.handles, GPD_KIND_STREAM, FAKE_STREAM,
			       &fake->stream.handle));
	assert(!gpd_handle_add(&fake->session.handles, GPD_KIND_STREAM, FAKE_OTHER_STREAM,
			       &fake->other.handle));
}

void
fake_destroy(struct fake *fake)
{
	gpd_handle_remove(&fake->session.handles, &fake->context.handle);
	gpd_handle_remove(&fake->session.handles, &fake->stream.handle);
	gpd_handle_remove(&fake->session.handles, &fake->other.handle);
	gpd_handle_fini(&fake->session.handles);
	free(fake->session.waits);
	gpd_ledger_destroy(fake->ledger);
	free(fake->data);
}

uint64_t
fake_allocated(const struct fake *fake, int device)
{
	return fake->session.account.line->devices[device].memory;
}

static struct fake *
of(struct gpd_session *session)
{
	return (struct fake *)session;
}

unsigned int
fake_markers(const struct fake *fake)
{
	return fake->session.waits->last - fake->session.waits->first;
}

void
fake_run_markers(struct fake *fake, int count)
{
	struct gpd_wait_queue *queue = fake->session.waits;

	for (; count && queue->first != queue->last; count--) {
		struct marker *marker = &queue->markers[queue->first++ % MARKERS_MAX];

		marker->done(&fake->session, marker->arg, CUDA_SUCCESS);
	}
}

CUresult
gpd_wait_add(struct gpd_session *session, struct gpd_stream *stream, gpd_wait_done *done, void *arg)
{
	struct gpd_wait_queue *queue = session->waits;
	CUresult result = called("marker");

	if (result != CUDA_SUCCESS)
		return result;
	assert(queue->last - queue->first < MARKERS_MAX);
	queue->markers[queue->last++ % MARKERS_MAX] = (struct marker){ done, arg };
	return CUDA_SUCCESS;
}

CUresult
gpd_wait_add_all(struct gpd_session *session, struct gpd_context *context, gpd_wait_done *done,
		 void *arg)
{
	return gpd_wait_add(session, NULL, done, arg);
}

bool
gpd_wait_none(struct gpd_session *session)
{
	return session->waits->last == session->waits->first;
}

void
gpd_wait_oldest(struct gpd_session *session)
{
	fake_run_markers(of(session), 1);
}

struct gpd_stream *
gpd_stream_get(const struct gpd_session *session, uint32_t id)
{
	return (struct gpd_stream *)gpd_handle_get(&session->handles, GPD_KIND_STREAM, id);
}

CUresult
gpd_stream_begin(struct gpd_session *session, uint32_t id, struct gpd_stream **stream_p)
{
	struct gpd_stream *stream = gpd_stream_get(session, id);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	gpd_copy_settle(session, stream);
	stream->work = ++session->work;
	*stream_p = stream;
	return CUDA_SUCCESS;
}

CUresult
gpd_stream_record(struct gpd_stream *stream, CUevent *event)
{
	return called("record");
}

CUresult
gpd_stream_barrier(struct gpd_session *session, struct gpd_stream *stream)
{
	of(session)->barriers++;
	return CUDA_SUCCESS;
}

struct gpd_context *
gpd_context_get(const struct gpd_session *session, uint32_t id)
{
	return (struct gpd_context *)gpd_handle_get(&session->handles, GPD_KIND_CONTEXT, id);
}

CUresult
gpd_session_enter(struct gpd_session *session, uint32_t context)
{
	return CUDA_SUCCESS;
}

CUresult
gpd_device_enter(int ordinal)
{
	return gpd_device_get(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

struct gpd_device *
gpd_device_get(int ordinal)
{
	return ordinal >= 0 && ordinal < gpd_worker.device_count ? &gpd_worker.devices[ordinal]
								 : NULL;
}

bool
gpd_driver_is_sticky(CUresult result)
{
	return result == CUDA_ERROR_ILLEGAL_ADDRESS;
}

uint64_t
gpd_session_bulk_size(const struct gpd_session *session)
{
	return session->bulk_left;
}

int
gpd_session_recv_bulk(struct gpd_session *session, void *dst, size_t size)
{
	struct fake *fake = of(session);

	assert(size <= session->bulk_left);
	if (dst)
		memcpy(dst, fake->bulk, size);
	fake->bulk += size;
	session->bulk_left -= size;
	return 0;
}

int
gpd_session_reply(struct gpd_session *session, uint16_t call, uint32_t request, CUresult result,
		  const void *fields, size_t size)
{
	struct fake *fake = of(session);

	fake->data_before = fake->data_size;
	if (fake->keeps_no_replies)
		return 0;
	fake->replies[fake->reply_count++] = (struct fake_reply){ call, request, result };
	return 0;
}

int
gpd_session_send_data(struct gpd_session *session, uint32_t request, uint64_t offset,
		      const void *data, size_t size)
{
	struct fake *fake = of(session);

	assert(offset == fake->data_size - fake->data_before);
	if (fake->data_size + size > fake->data_room) {
		fake->data_room = 4 * (fake->data_size + size);
		fake->data = realloc(fake->data, fake->data_room);
	}
	memcpy(fake->data + fake->data_size, data, size);
	fake->data_size += size;
	fake->data_notes++;
	return 0;
}

int
gpd_session_reply_data(struct gpd_session *session, uint16_t call, uint32_t request,
		       const void *data, size_t size)
{
	int r = gpd_session_send_data(session, request, 0, data, size);

	of(session)->data_notes--;
	return r ? r : gpd_session_reply(session, call, request, CUDA_SUCCESS, NULL, 0);
}

int
gpd_session_send_print(struct gpd_session *session, const char *text, size_t size)
{
	struct fake *fake = of(session);

	size_t used = strlen(fake->printed);

	if (size > FAKE_TEXT - 1 - used)
		size = FAKE_TEXT - 1 - used;
	memcpy(fake->printed + used, text, size);
	fake->printed[used + size] = 0;
	return 0;
}

int
gpd_session_send_complaint(struct gpd_session *session, const char *text)
{
	struct fake *fake = of(session);
	size_t used = strlen(fake->complained);

	snprintf(fake->complained + used, sizeof(fake->complained) - used, "%s", text);
	return 0;
}

void
gpd_session_poison(struct gpd_session *session, CUresult result)
{
	session->sticky = (int)result;
}

void
gpd_worker_lost(struct gpd_session *finder, CUresult result)
{
	gpd_worker.lost = (int)result;
}

void
gpd_session_end(struct gpd_session *session, const char *reason)
{
	session->closing = true;
}

void
gpd_session_violation(struct gpd_session *session, const char *format, ...)
{
	struct fake *fake = of(session);
	va_list args;

	va_start(args, format);
	vsnprintf(fake->violation, sizeof(fake->violation), format, args);
	va_end(args);
}

void
gpd_retire_uses_heap(void)
{
	(void)called("heap used");
}

bool
gpd_retire_enter(struct gpd_session *session, int device)
{
	return true;
}

void
gpd_retire_leave(struct gpd_session *session, int device)
{
}

void
gpd_quiet_wait(struct gpd_session *session, int device)
{
	(void)called("held");
}
