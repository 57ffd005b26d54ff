/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that changes its environment before its first CUDA call.
 *
 *   cleared all      clears it: the pool of the start is used
 *   cleared one      removes REMOTE_GPU only: the same
 *   cleared empty    sets REMOTE_GPU to "": there is no GPU
 *   cleared visible  clears it and sets CUDA_VISIBLE_DEVICES to "": there is no GPU
 */
#include "app.h"

int
main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int count = -1;

	if (strcmp(how, "one") == 0)
		(void)unsetenv("REMOTE_GPU");
	else if (strcmp(how, "empty") == 0)
		(void)setenv("REMOTE_GPU", "", 1);
	else
		(void)clearenv();
	if (strcmp(how, "visible") == 0)
		(void)setenv("CUDA_VISIBLE_DEVICES", "", 1);
	if (strcmp(how, "empty") == 0 || strcmp(how, "visible") == 0) {
		EXPECT(cudaErrorNoDevice, cudaGetDeviceCount(&count));
		return app_ok("cleared");
	}
	CHECK(cudaGetDeviceCount(&count));
	REQUIRE(count == 1);
	REQUIRE(app_download(app_upload(std::vector<int>{ 3, 4 }), 2)[1] == 4);
	return app_ok("cleared");
}
