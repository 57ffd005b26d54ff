/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of the driver API that prints results for a test.
 *
 *   probe images FILE...      loads each file's bytes as a module and prints the result
 *   probe libraries FILE...   loads all of them as libraries, then prints the number of kernels of
 *                             each, or the error
 *   probe variable FILE NAME  a variable of a module: prints its attributes, and whether memory
 *                             can be mapped at its address, before and after unloading
 *   probe allocations COUNT SIZE
 *                             allocates COUNT times, then frees the allocations in turn
 *   probe again COUNT SIZE    COUNT times: allocates and frees
 *   probe hold SIZE           allocates and frees, prints "held" and waits for the end of its input
 *   probe pinned SIZE         writes pinned memory, prints "held", and at the end of its input
 *                             prints whether the memory is unchanged and can be written
 *   probe pairs COUNT SIZE    COUNT times: allocates, sets and frees in stream order
 *   probe open|import HANDLE  another process's memory, by the bytes of its handle in hexadecimal:
 *                             an IPC handle, or a file descriptor
 *   probe elsewhere DEVICES   memory that was allocated for device 0, and the last device's kernels
 *   probe reach COUNT SIZE    COUNT times: allocates and frees pinned memory that kernels access
 *   probe waits COUNT SIZE    with SIZE bytes of such memory: COUNT waits of each kind for work
 *                             that writes to it; prints the milliseconds of one wait
 */
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void
require(CUresult result, const char *what)
{
	const char *name = "?";

	if (result == CUDA_SUCCESS)
		return;
	(void)cuGetErrorName(result, &name);
	printf("%s: %s (%d)\n", what, name, (int)result);
	exit(1);
}

/* The file's bytes, followed by a NUL.  Ownership: the caller frees them. */
static char *
read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *bytes;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 ||
	    fseek(file, 0, SEEK_SET)) {
		perror(path);
		exit(2);
	}
	bytes = calloc(1, (size_t)size + 16);
	if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size) {
		perror(path);
		exit(2);
	}
	(void)fclose(file);
	return bytes;
}

static void
load_images(char **paths, int count)
{
	for (int i = 0; i < count; i++) {
		const char *base = strrchr(paths[i], '/');
		char *bytes = read_file(paths[i]);
		const char *name = "?";
		CUmodule module;
		CUresult result = cuModuleLoadData(&module, bytes);

		(void)cuGetErrorName(result, &name);
		printf("%s: %s (%d)\n", base ? base + 1 : paths[i], name, (int)result);
		if (result == CUDA_SUCCESS)
			require(cuModuleUnload(module), "cuModuleUnload");
		free(bytes);
	}
}

static void
load_libraries(char **paths, int count)
{
	CUlibrary *libraries = calloc((size_t)count, sizeof(*libraries));
	CUresult *results = calloc((size_t)count, sizeof(*results));

	if (!libraries || !results)
		exit(2);
	for (int i = 0; i < count; i++) {
		char *bytes = read_file(paths[i]);

		results[i] = cuLibraryLoadData(&libraries[i], bytes, NULL, NULL, 0, NULL, NULL, 0);
		free(bytes);
	}
	for (int i = 0; i < count; i++) {
		const char *base = strrchr(paths[i], '/');
		unsigned int kernels = 0;
		bool loaded = results[i] == CUDA_SUCCESS;

		if (loaded)
			results[i] = cuLibraryGetKernelCount(&kernels, libraries[i]);
		printf("%s: %u kernels (%d)\n", base ? base + 1 : paths[i], kernels,
		       (int)results[i]);
		if (loaded)
			require(cuLibraryUnload(libraries[i]), "cuLibraryUnload");
	}
	require(cuCtxSynchronize(), "cuCtxSynchronize");
	free(libraries);
	free(results);
}

static void
allocate(int count, size_t size)
{
	CUdeviceptr *memory = calloc((size_t)count, sizeof(*memory));

	if (!memory)
		exit(2);
	for (int i = 0; i < count; i++)
		require(cuMemAlloc(&memory[i], size), "cuMemAlloc");
	for (int i = 0; i < count; i++)
		require(cuMemFree(memory[i]), "cuMemFree");
	free(memory);
}

static void
hold(size_t size)
{
	allocate(1, size);
	require(cuCtxSynchronize(), "cuCtxSynchronize");
	printf("held\n");
	(void)fflush(stdout);
	(void)getchar();
}

/* The session may have ended meanwhile. */
static void
hold_pinned(size_t size)
{
	size_t count = size / sizeof(size_t), free_bytes, total;
	size_t *words;

	require(cuMemHostAlloc((void **)&words, size, 0), "cuMemHostAlloc");
	for (size_t i = 0; i < count; i++)
		words[i] = i ^ 0x5555;
	printf("held\n");
	(void)fflush(stdout);
	(void)getchar();
	printf("%d\n", (int)cuMemGetInfo(&free_bytes, &total));
	for (size_t i = 0; i < count; i++) {
		if (words[i] != (i ^ 0x5555)) {
			printf("word %zu is lost\n", i);
			exit(1);
		}
		words[i] = i;
	}
	printf("all there\n");
	exit(0);
}

static void
allocate_in_order(int count, size_t size)
{
	CUdeviceptr memory;
	CUstream stream;

	require(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	for (int i = 0; i < count; i++) {
		require(cuMemAllocAsync(&memory, size, stream), "cuMemAllocAsync");
		require(cuMemsetD8Async(memory, (unsigned char)i, size, stream), "cuMemsetD8Async");
		require(cuMemFreeAsync(memory, stream), "cuMemFreeAsync");
	}
	require(cuStreamDestroy(stream), "cuStreamDestroy");
}

/* Whether the program gets a page there. */
static const char *
try_to_map(CUdeviceptr address)
{
	void *wanted = (void *)(uintptr_t)(address & ~(CUdeviceptr)4095);
	void *found = mmap(wanted, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (found == MAP_FAILED)
		return strerror(errno);
	(void)munmap(found, 4096);
	return found == wanted ? "free" : "elsewhere";
}

static void
print_variable(const char *path, const char *name)
{
	CUmodule module = NULL;
	CUdeviceptr address = 0;
	size_t size = 0;
	char *image = read_file(path);
	CUresult result = cuModuleLoadData(&module, image);

	require(result, "cuModuleLoadData");
	result = cuModuleGetGlobal(&address, &size, module, name);
	printf("%s: %d, %zu bytes, there: %s\n", name, result, size, try_to_map(address));
	require(cuModuleUnload(module), "cuModuleUnload");
	printf("unloaded: %s\n", try_to_map(address));
	free(image);
}

/* Pinned memory that kernels reach, again and again: each time a block of all that there was. */
static void
reach_again(int count, size_t size)
{
	CUdeviceptr device;
	void *memory;

	for (int i = 0; i < count; i++) {
		require(cuMemHostAlloc(&memory, size, 0), "cuMemHostAlloc");
		require(cuMemHostGetDevicePointer(&device, memory, 0), "cuMemHostGetDevicePointer");
		require(cuMemFreeHost(memory), "cuMemFreeHost");
		/* The daemon answers for the block that has gone. */
		require(cuCtxSynchronize(), "cuCtxSynchronize");
	}
}

static double
now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct waiting {
	CUstream stream;
	CUevent event;
	CUdeviceptr device;
	void *pinned;
};

static CUresult
wait_for_stream(const struct waiting *waiting)
{
	return cuStreamSynchronize(waiting->stream);
}

static CUresult
wait_for_event(const struct waiting *waiting)
{
	CUresult result = cuEventRecord(waiting->event, waiting->stream);

	return result == CUDA_SUCCESS ? cuEventSynchronize(waiting->event) : result;
}

static CUresult
wait_for_context(const struct waiting *waiting)
{
	return cuCtxSynchronize();
}

/* On the legacy stream, which the other one's work comes before. */
static CUresult
wait_for_copy(const struct waiting *waiting)
{
	char bytes[64];

	return cuMemcpyDtoH(bytes, waiting->device, sizeof(bytes));
}

/* The copy waits, and then there is nothing to wait for. */
static CUresult
wait_after_copy(const struct waiting *waiting)
{
	char bytes[64];
	CUresult result = cuMemcpyDtoHAsync(bytes, waiting->device, sizeof(bytes), waiting->stream);

	return result == CUDA_SUCCESS ? cuStreamSynchronize(waiting->stream) : result;
}

/* The reply to the copy reports that the stream is idle. */
static CUresult
wait_after_pinned(const struct waiting *waiting)
{
	CUresult result = cuMemcpyDtoHAsync(waiting->pinned, waiting->device, 64, waiting->stream);

	return result == CUDA_SUCCESS ? cuStreamSynchronize(waiting->stream) : result;
}

/* The stream is done, and what was changed is here. */
static CUresult
wait_again(const struct waiting *waiting)
{
	CUresult result = cuStreamSynchronize(waiting->stream);

	for (int i = 0; i < 5 && result == CUDA_SUCCESS; i++)
		result = cuStreamQuery(waiting->stream);
	return result;
}

/* Each wait is for work that writes to the memory, so the values are there after the wait. */
static void
wait_often(int count, size_t size)
{
	static const struct {
		const char *name;
		CUresult (*wait)(const struct waiting *waiting);
	} kinds[] = {
		{ "stream", wait_for_stream },   { "event", wait_for_event },
		{ "context", wait_for_context }, { "copy", wait_for_copy },
		{ "copied", wait_after_copy },   { "pinned", wait_after_pinned },
		{ "again", wait_again },
	};
	struct waiting waiting;
	unsigned char *memory, value = 0;
	CUdeviceptr there;

	require(cuMemHostAlloc((void **)&memory, size, CU_MEMHOSTALLOC_DEVICEMAP),
		"cuMemHostAlloc");
	require(cuMemHostGetDevicePointer(&there, memory, 0), "cuMemHostGetDevicePointer");
	require(cuMemAlloc(&waiting.device, 64), "cuMemAlloc");
	require(cuMemHostAlloc(&waiting.pinned, 64, 0), "cuMemHostAlloc");
	require(cuStreamCreate(&waiting.stream, CU_STREAM_DEFAULT), "cuStreamCreate");
	require(cuEventCreate(&waiting.event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		double took = 0;

		for (int i = 0; i < count; i++) {
			double begin;

			require(cuMemsetD8Async(there, ++value, size, waiting.stream),
				"cuMemsetD8Async");
			begin = now_ms();
			require(kinds[kind].wait(&waiting), kinds[kind].name);
			took += now_ms() - begin;
			for (size_t at = 0; at < size; at++) {
				if (memory[at] == value)
					continue;
				printf("after the wait %s, byte %zu is %u, not %u\n",
				       kinds[kind].name, at, memory[at], value);
				exit(1);
			}
		}
		printf("%s %.3f ms\n", kinds[kind].name, took / count);
	}
	require(cuMemFreeHost(memory), "cuMemFreeHost");
}

static CUresult
import_memory(const uint8_t *bytes, size_t size)
{
	CUmemGenericAllocationHandle memory;
	int fd = memfd_create("handle", MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)) {
		perror("probe: a sealed file");
		exit(2);
	}
	return cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)fd, /* NOLINT */
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static void
open_memory(const char *hex, bool by_descriptor)
{
	CUdeviceptr address;
	CUipcMemHandle handle;
	uint8_t bytes[sizeof(handle)];
	const char *name = "?";

	for (size_t i = 0; i < sizeof(bytes); i++) {
		if (sscanf(hex + 2 * i, "%2hhx", &bytes[i]) != 1) {
			fprintf(stderr, "probe: \"%s\" is not 64 bytes\n", hex);
			exit(2);
		}
	}
	memcpy(&handle, bytes, sizeof(handle));
	(void)cuGetErrorName(by_descriptor ? import_memory(bytes, sizeof(bytes))
					   : cuIpcOpenMemHandle(&address, handle,
								CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
			     &name);
	printf("%s\n", name);
}

/* Memory that was had for this device, and what the last device's kernels have of it. */
static void
reach_elsewhere(int count)
{
	void *memory, *own = aligned_alloc(4096, 4096);
	CUdeviceptr device;
	CUcontext context;

	require(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
	require(cuMemHostRegister(own, 4096, CU_MEMHOSTREGISTER_PORTABLE), "cuMemHostRegister");
	require(cuDevicePrimaryCtxRetain(&context, count - 1), "cuDevicePrimaryCtxRetain");
	require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	printf("allocated %d\n", (int)cuMemHostGetDevicePointer(&device, memory, 0));
	printf("registered %d\n", (int)cuMemHostGetDevicePointer(&device, own, 0));
	require(cuMemHostUnregister(own), "cuMemHostUnregister");
	require(cuMemFreeHost(memory), "cuMemFreeHost");
	free(own);
}

int
main(int argc, char **argv)
{
	CUcontext context;
	CUdevice device;

	require(cuInit(0), "cuInit");
	require(cuDeviceGet(&device, 0), "cuDeviceGet");
	require(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	if (argc > 2 && strcmp(argv[1], "images") == 0) {
		load_images(argv + 2, argc - 2);
	} else if (argc > 2 && strcmp(argv[1], "libraries") == 0) {
		load_libraries(argv + 2, argc - 2);
	} else if (argc == 4 && strcmp(argv[1], "variable") == 0) {
		print_variable(argv[2], argv[3]);
	} else if (argc == 4 && strcmp(argv[1], "allocations") == 0) {
		allocate(atoi(argv[2]), strtoul(argv[3], NULL, 10));
	} else if (argc == 3 && strcmp(argv[1], "hold") == 0) {
		hold(strtoul(argv[2], NULL, 10));
	} else if (argc == 3 && strcmp(argv[1], "pinned") == 0) {
		hold_pinned(strtoul(argv[2], NULL, 10));
	} else if (argc == 4 && strcmp(argv[1], "again") == 0) {
		for (int i = atoi(argv[2]); i > 0; i--)
			allocate(1, strtoul(argv[3], NULL, 10));
	} else if (argc == 4 && strcmp(argv[1], "pairs") == 0) {
		allocate_in_order(atoi(argv[2]), strtoul(argv[3], NULL, 10));
	} else if (argc == 3 && (strcmp(argv[1], "open") == 0 || strcmp(argv[1], "import") == 0)) {
		open_memory(argv[2], strcmp(argv[1], "import") == 0);
	} else if (argc == 4 && strcmp(argv[1], "reach") == 0) {
		reach_again(atoi(argv[2]), strtoul(argv[3], NULL, 10));
	} else if (argc == 3 && strcmp(argv[1], "elsewhere") == 0) {
		reach_elsewhere(atoi(argv[2]));
	} else if (argc == 4 && strcmp(argv[1], "waits") == 0) {
		wait_often(atoi(argv[2]), strtoul(argv[3], NULL, 10));
	} else {
		fprintf(stderr, "usage: probe images|libraries FILE... | variable FILE NAME | "
				"hold|pinned SIZE | open|import HANDLE | elsewhere DEVICES | "
				"allocations|again|pairs|reach|waits COUNT SIZE\n");
		return 2;
	}
	require(cuCtxSynchronize(), "cuCtxSynchronize");
	printf("probe: ok\n");
	return 0;
}
