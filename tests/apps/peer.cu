/* SPDX-License-Identifier: Apache-2.0 */
/* A device as a peer of itself and of all other devices; copies between contexts and in batches. */
#include "app.h"

#include <cuda.h>

using bytes = std::vector<unsigned char>;

/* In a stream, and as a box of rows. */
static void
others(unsigned char *to, const unsigned char *from, const bytes &host)
{
	cudaMemcpy3DPeerParms box = {};
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMemsetAsync(to, 0, host.size(), stream));
	CHECK(cudaMemcpyPeerAsync(to, 0, from, 0, host.size(), stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(app_download(to, host.size()) == host);
	CHECK(cudaMemset(to, 0, host.size()));
	box.srcPtr = make_cudaPitchedPtr(const_cast<unsigned char *>(from), 100, 100, 50);
	box.dstPtr = make_cudaPitchedPtr(to, 64, 64, 50);
	box.extent = make_cudaExtent(60, 50, 1);
	CHECK(cudaMemcpy3DPeer(&box));
	bytes back = app_download(to, host.size());
	for (size_t row = 0; row < 50; row++)
		REQUIRE(memcmp(&back[row * 64], &host[row * 100], 60) == 0);
	CHECK(cudaStreamDestroy(stream));
}

typedef CUresult batch_copy(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			    CUmemcpyAttributes *attrs, size_t *begins, size_t attributes,
			    size_t *failed, CUstream stream);

/* To the device, on the device, and back, in one call. */
static void
batches(unsigned char *to, unsigned char *from, const bytes &host)
{
	auto address = [](const void *at) { return reinterpret_cast<CUdeviceptr>(at); };
	cudaDriverEntryPointQueryResult found;
	bytes given(1000, 7), back(1000);
	CUdeviceptr dsts[] = { address(from), address(to + 1000), address(back.data()) };
	CUdeviceptr srcs[] = { address(given.data()), address(from + 2000), address(from + 3000) };
	size_t sizes[] = { 1000, 500, 1000 }, begins[] = { 0, 2 }, failed;
	CUmemcpyAttributes attrs[2] = {};
	cudaStream_t stream;
	void *function;

	CHECK(cudaGetDriverEntryPointByVersion("cuMemcpyBatchAsync", &function, 12080,
					       cudaEnableDefault, &found));
	if (found != cudaDriverEntryPointSuccess)
		return;
	batch_copy *copy = reinterpret_cast<batch_copy *>(function);
	attrs[0].srcAccessOrder = attrs[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	CHECK(cudaStreamCreate(&stream));
	REQUIRE(copy(dsts, srcs, sizes, 3, attrs, begins, 2, &failed, stream) == CUDA_SUCCESS);
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(app_download(from, 1000) == given);
	REQUIRE(memcmp(&app_download(to, 1500)[1000], &host[2000], 500) == 0);
	REQUIRE(memcmp(&back[0], &host[3000], 1000) == 0);
	begins[0] = 1;
	REQUIRE(copy(dsts, srcs, sizes, 3, attrs, begins, 2, &failed, stream) ==
		CUDA_ERROR_INVALID_VALUE);
	begins[0] = 0;
	REQUIRE(copy(dsts, srcs, sizes, 3, attrs, begins, 0, &failed, stream) ==
		CUDA_ERROR_INVALID_VALUE);
	REQUIRE(copy(dsts, srcs, sizes, 0, attrs, begins, 1, &failed, stream) ==
		CUDA_ERROR_INVALID_VALUE);
	attrs[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	REQUIRE(copy(dsts, srcs, sizes, 3, attrs, begins, 2, &failed, stream) ==
		CUDA_ERROR_INVALID_VALUE);
	CHECK(cudaStreamDestroy(stream));
}

int
main()
{
	const size_t size = 5001;
	int count, can;
	bytes host(size);

	CHECK(cudaGetDeviceCount(&count));
	CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
	REQUIRE(!can);
	EXPECT(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, count));
	for (size_t i = 0; i < size; i++)
		host[i] = (unsigned char)(i * 13);
	unsigned char *from = app_upload(host);
	unsigned char *to = app_malloc<unsigned char>(size);
	CHECK(cudaMemcpyPeer(to, 0, from, 0, size));
	REQUIRE(app_download(to, size) == host);
	others(to, from, host);
	batches(to, from, host);
	EXPECT(cudaErrorInvalidDevice, cudaMemcpyPeer(to, 0, from, count, size));
	CHECK(cudaFree(from));
	CHECK(cudaFree(to));
	return app_ok("peer");
}
