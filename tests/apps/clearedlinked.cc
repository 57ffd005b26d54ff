/* SPDX-License-Identifier: Apache-2.0 */
/* Clears its environment in main(), when libcuda.so.1, with which it is linked, is already
 * loaded. */
#include "driver_app.h"

int
main()
{
	int count = 0;

	(void)clearenv();
	CHECK(cuInit(0));
	CHECK(cuDeviceGetCount(&count));
	REQUIRE(count == 1);
	printf("clearedlinked: ok\n");
	return 0;
}
