/* SPDX-License-Identifier: Apache-2.0 */
/* A device as a peer of itself and of all others. */
#include "app.h"

int
main()
{
	const size_t size = 5001;
	int count, can;
	std::vector<unsigned char> host(size);

	CHECK(cudaGetDeviceCount(&count));
	CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
	REQUIRE(!can);
	EXPECT(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, count));
	for (size_t i = 0; i < size; i++)
		host[i] = (unsigned char)(i * 13);
	unsigned char *from = app_upload(host);
	unsigned char *to = app_malloc<unsigned char>(size);
	cudaError_t error = cudaMemcpyPeer(to, 0, from, 0, size);
	app_skip_unless_supported(error, "copies between devices");
	CHECK(error);
	REQUIRE(app_download(to, size) == host);
	CHECK(cudaFree(from));
	CHECK(cudaFree(to));
	return app_ok("peer");
}
