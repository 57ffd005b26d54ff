/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory of one process in another, by descriptors that the two pass over a socket. */
#include "physical_app.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static __global__ void
fill(int *data, size_t count, int first)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += gridDim.x * blockDim.x)
		data[i] = first + (int)i;
}

static const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
static CUmemAllocationProp prop;
static size_t granule;
static int peer;

static void
prepare()
{
	int supported;

	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(0));
	DCHECK(DRIVER(cuDeviceGetAttribute)(
		&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
	app_skip_unless_supported(supported ? cudaSuccess : cudaErrorNotSupported,
				  "memory as a descriptor");
	prop = app_physical_properties();
	prop.requestedHandleTypes = type;
	granule = app_physical_granularity(prop);
}

static int *
map(CUmemGenericAllocationHandle memory)
{
	return (int *)app_physical_map(memory, granule);
}

static void
unmap(int *data)
{
	app_physical_unmap((CUdeviceptr)data, granule);
}

static void
write_to(int *data, int first)
{
	fill<<<32, 256>>>(data, granule / sizeof(int), first);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

static void
expect(const int *data, int first)
{
	std::vector<int> host = app_download(data, granule / sizeof(int));

	for (size_t i = 0; i < host.size(); i++)
		REQUIRE(host[i] == first + (int)i);
}

static void
pass(int fd)
{
	char byte = 'x', control[CMSG_SPACE(sizeof(int))] = {};
	iovec data = { &byte, 1 };
	msghdr message = {};

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	REQUIRE(sendmsg(peer, &message, 0) == 1);
	close(fd);
}

static int
take()
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	iovec data = { &byte, 1 };
	msghdr message = {};
	int fd;

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	REQUIRE(recvmsg(peer, &message, 0) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static void
nudge()
{
	REQUIRE(write(peer, "x", 1) == 1);
}

static void
await()
{
	char byte;

	REQUIRE(read(peer, &byte, 1) == 1);
}

static CUmemGenericAllocationHandle
import_from(int fd)
{
	CUmemGenericAllocationHandle memory;

	DCHECK(DRIVER(cuMemImportFromShareableHandle)(&memory, (void *)(intptr_t)fd, type));
	close(fd);
	return memory;
}

static int
export_of(CUmemGenericAllocationHandle memory)
{
	int fd = -1;

	DCHECK(DRIVER(cuMemExportToShareableHandle)(&fd, memory, type, 0));
	REQUIRE(fd >= 0);
	return fd;
}

static void
refuse()
{
	CUmemGenericAllocationHandle memory, none;
	int fd, ends[2];

	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	memory = app_physical_create(prop, granule);
	prop.requestedHandleTypes = type;
	DEXPECT(CUDA_ERROR_INVALID_VALUE,
		DRIVER(cuMemExportToShareableHandle)(&fd, memory, type, 0));
	DCHECK(DRIVER(cuMemRelease)(memory));
	REQUIRE(pipe(ends) == 0);
	REQUIRE(DRIVER(cuMemImportFromShareableHandle)(&none, (void *)(intptr_t)ends[0], type) !=
		CUDA_SUCCESS);
	close(ends[0]);
	close(ends[1]);
}

static int
produce()
{
	CUmemGenericAllocationHandle memory, again;
	int *data, *second;

	prepare();
	refuse();
	memory = app_physical_create(prop, granule);
	/* Before it is mapped anywhere. */
	pass(export_of(memory));
	data = map(memory);
	await();
	expect(data, 1000);
	write_to(data, 2000);
	nudge();
	await();
	/* In the same process, too. */
	again = import_from(export_of(memory));
	second = map(again);
	expect(second, 3000);
	DCHECK(DRIVER(cuMemRelease)(memory));
	DCHECK(DRIVER(cuMemRelease)(again));
	unmap(data);
	unmap(second);
	nudge();
	return 0;
}

static int
consume()
{
	CUmemGenericAllocationHandle memory;
	CUmemAllocationProp found;
	int *data;

	prepare();
	memory = import_from(take());
	DCHECK(DRIVER(cuMemGetAllocationPropertiesFromHandle)(&found, memory));
	REQUIRE(found.type == prop.type && found.location.id == 0);
	data = map(memory);
	DCHECK(DRIVER(cuMemRelease)(memory));
	write_to(data, 1000);
	nudge();
	await();
	expect(data, 2000);
	write_to(data, 3000);
	nudge();
	await();
	/* The other process has it no more. */
	expect(data, 3000);
	unmap(data);
	return 0;
}

int
main()
{
	int pair[2], status;
	pid_t child;

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	child = fork();
	REQUIRE(child >= 0);
	peer = pair[child == 0];
	close(pair[child != 0]);
	if (child == 0)
		return consume();
	produce();
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return app_ok("shareable");
}
