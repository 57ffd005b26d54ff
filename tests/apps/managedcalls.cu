/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls on managed memory whose newest bytes are on the GPU.
 * managedcalls a: a call transfers the right bytes, or fails with EFAULT.
 * managedcalls exact: a call transfers the right bytes.
 */
#include "app.h"

#include <cerrno>
#include <cstdint>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const size_t size = 1 << 20;
static bool exact;
static unsigned char *memory;
static int file;

static __global__ void
add(int *data, int count)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
		data[i] += 1;
}

/* Afterwards all of the memory is on the GPU. */
static void
use()
{
	add<<<8, 128>>>((int *)memory, size / sizeof(int));
	CHECK(cudaDeviceSynchronize());
}

/* Returns whether a call has transferred the wanted number of bytes. Otherwise it must have
 * transferred fewer or failed with EFAULT. */
static bool
moved(ssize_t got, size_t wanted)
{
	if (got == (ssize_t)wanted)
		return true;
	REQUIRE(!exact);
	REQUIRE(got >= 0 || errno == EFAULT);
	return false;
}

static std::vector<unsigned char>
pattern(int seed)
{
	std::vector<unsigned char> bytes(size);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(i * 13 + i / 4096 + seed);
	return bytes;
}

/* Makes the kernel's change to a copy of the bytes. */
static void
change(std::vector<unsigned char> &bytes)
{
	for (size_t i = 0; i < size; i += sizeof(int)) {
		int word;

		memcpy(&word, &bytes[i], sizeof(word));
		word++;
		memcpy(&bytes[i], &word, sizeof(word));
	}
}

static void
files()
{
	std::vector<unsigned char> model = pattern(1), found(size);

	REQUIRE(pwrite(file, model.data(), size, 0) == (ssize_t)size);
	memset(memory, 0, size);
	use();
	/* Writes to memory whose contents are on the GPU. */
	if (!moved(pread(file, memory, size, 0), size))
		memcpy(memory, model.data(), size);
	REQUIRE(memcmp(memory, model.data(), size) == 0);
	use();
	change(model);
	/* Reads from it. */
	if (moved(pwrite(file, memory, size, 0), size)) {
		REQUIRE(pread(file, found.data(), size, 0) == (ssize_t)size);
		REQUIRE(found == model);
	}
	/* A call that changes only a part. */
	use();
	change(model);
	REQUIRE(pwrite(file, "part", 4, 0) == 4);
	if (moved(pread(file, memory + 70000, 4, 0), 4))
		memcpy(&model[70000], "part", 4);
	use();
	change(model);
	REQUIRE(memcmp(memory, model.data(), size) == 0);
	printf("files\n");
}

static void
sockets()
{
	std::vector<unsigned char> model = pattern(2), found(2000);
	int ends[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	memcpy(memory, model.data(), size);
	use();
	change(model);
	if (moved(send(ends[0], memory + 65000, 2000, 0), 2000)) {
		REQUIRE(recv(ends[1], found.data(), 2000, MSG_WAITALL) == 2000);
		REQUIRE(memcmp(found.data(), &model[65000], 2000) == 0);
	}
	use();
	change(model);
	REQUIRE(send(ends[0], "text", 4, 0) == 4);
	if (moved(recv(ends[1], memory + 65534, 4, 0), 4))
		memcpy(&model[65534], "text", 4);
	REQUIRE(memcmp(memory, model.data(), size) == 0);
	REQUIRE(close(ends[0]) == 0 && close(ends[1]) == 0);
	printf("sockets\n");
}

/* Memory other than buffers that calls read and write. */
static void
structures()
{
	iovec *list = (iovec *)(memory + 8192);
	struct stat *facts = (struct stat *)(memory + 300000);
	char *path = (char *)(memory + 400000), bytes[8] = "1234567";
	uint32_t *word = (uint32_t *)(memory + 500000);

	memset(memory, 0, size);
	list->iov_base = bytes;
	list->iov_len = 7;
	use();
	memset(memory, 0, 8);
	list->iov_base = bytes;
	list->iov_len = 7;
	REQUIRE(pwritev(file, list, 1, 0) == 7);
	use();
	if (fstat(file, facts) == 0)
		REQUIRE((size_t)facts->st_size == size);
	else
		REQUIRE(!exact && errno == EFAULT);
	strcpy(path, "/");
	/* The kernel adds one to the first byte and to every fourth byte. */
	path[0]--;
	use();
	if (access(path, F_OK) != 0)
		REQUIRE(!exact && errno == EFAULT);
	*word = 5;
	use();
	/* The value is 6, so the call does not wait. */
	REQUIRE(syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 5, nullptr, nullptr, 0) == -1);
	REQUIRE(errno == EAGAIN || (!exact && errno == EFAULT));
	printf("structures\n");
}

int
main(int argc, char **argv)
{
	exact = argc > 1 && strcmp(argv[1], "exact") == 0;
	file = memfd_create("managedcalls", MFD_CLOEXEC);
	REQUIRE(file >= 0);
	CHECK(cudaMallocManaged(&memory, size));
	files();
	sockets();
	structures();
	CHECK(cudaFree(memory));
	return app_ok("managedcalls");
}
