/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, fills and graphs whose host memory has many pages, and which kernels access, too. */
#include "app.h"

static const size_t mib = (size_t)1 << 20, large = 20 * mib, room = 18 * mib;
static cudaStream_t stream;
static char *mapped, *copied;
static std::vector<char> plain(large);

static void
write_pattern(unsigned int seed)
{
	CHECK(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < large; i++)
		mapped[i] = (char)(seed + i * 7 + i / 251);
}

static void
expect_copied(size_t at, const char *wanted, size_t size)
{
	CHECK(cudaMemcpyAsync(plain.data(), copied + at, size, cudaMemcpyDefault, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(memcmp(plain.data(), wanted, size) == 0);
}

static void
expect_bytes(const char *at, char value, size_t size)
{
	CHECK(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < size; i++)
		REQUIRE(at[i] == value);
}

static void
large_rows()
{
	write_pattern(1);
	CHECK(cudaMemcpyAsync(copied, mapped, large, cudaMemcpyHostToDevice, stream));
	expect_copied(0, mapped, large);
	CHECK(cudaMemsetAsync(copied, 3, large, stream));
	CHECK(cudaMemcpyAsync(mapped + 5, copied + 77, room, cudaMemcpyDeviceToHost, stream));
	expect_bytes(mapped + 5, 3, room);
	CHECK(cudaMemsetAsync(mapped + 3, 9, room, stream));
	expect_bytes(mapped + 3, 9, room);
	/* Within the memory, from one part to another. */
	write_pattern(2);
	CHECK(cudaMemcpyAsync(mapped + 10 * mib, mapped + 1, 9 * mib, cudaMemcpyDefault, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(memcmp(mapped + 10 * mib, mapped + 1, 8 * mib) == 0);
	std::vector<char> other(room, 4);
	CHECK(cudaMemcpyAsync(mapped + 1, other.data(), room, cudaMemcpyDefault, stream));
	expect_bytes(mapped + 1, 4, room);
}

static void
large_boxes()
{
	const size_t width = mib - 100, pitch = mib + 4096, height = 17;
	cudaChannelFormatDesc bytes = cudaCreateChannelDesc<char>();
	cudaArray_t array;

	write_pattern(5);
	CHECK(cudaMemcpy2DAsync(copied, width, mapped + 11, pitch, width, height,
				cudaMemcpyHostToDevice, stream));
	for (size_t row = 0; row < height; row++)
		expect_copied(row * width, mapped + 11 + row * pitch, width);
	CHECK(cudaMemset2DAsync(mapped, pitch, 6, width, height, stream));
	for (size_t row = 0; row < height; row++)
		expect_bytes(mapped + row * pitch, 6, width);
	REQUIRE(mapped[width] != 6 || mapped[width + 1] != 6);

	CHECK(cudaMallocArray(&array, &bytes, 65000, 280));
	write_pattern(7);
	CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, mapped + 1, 65536, 65000, 280,
				       cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemsetAsync(copied, 0, large, stream));
	CHECK(cudaMemcpy2DFromArrayAsync(copied, 65000, array, 0, 0, 65000, 280,
					 cudaMemcpyDeviceToDevice, stream));
	for (size_t row = 0; row < 280; row += 31)
		expect_copied(row * 65000, mapped + 1 + row * 65536, 65000);
	CHECK(cudaFreeArray(array));
}

static void
large_graph()
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t filled, there, back;
	cudaMemsetParams fill = {};

	fill.dst = mapped + 4;
	fill.value = 8;
	fill.elementSize = 4;
	fill.width = room / 4;
	fill.height = 1;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));
	CHECK(cudaGraphAddMemcpyNode1D(&there, graph, &filled, 1, copied, mapped + 4, room,
				       cudaMemcpyHostToDevice));
	CHECK(cudaGraphAddMemcpyNode1D(&back, graph, &there, 1, mapped, copied + 1, room,
				       cudaMemcpyDeviceToHost));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	write_pattern(9);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < room - 4; i++)
		REQUIRE(mapped[i] == (i % 4 == 3 ? 8 : 0));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

int
main()
{
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaHostAlloc(&mapped, large, cudaHostAllocMapped));
	copied = app_malloc<char>(large);
	large_rows();
	printf("rows\n");
	large_boxes();
	printf("boxes\n");
	large_graph();
	printf("a graph\n");
	CHECK(cudaFreeHost(mapped));
	CHECK(cudaFree(copied));
	CHECK(cudaStreamDestroy(stream));
	return app_ok("largeblocks");
}
