/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeshare US SECONDS [START [-wait]]: launches kernels of one block that run US microseconds
 * each, from now or from the time START (seconds since 1970), and prints how many of them ended
 * within SECONDS. About 100 ms of them are queued; -wait: each is waited for.
 */
#include "app.h"

#include <chrono>
#include <thread>

static __global__ void
stay(unsigned long long ns)
{
	app_stay(ns);
}

static double
seconds_now()
{
	auto now = std::chrono::system_clock::now().time_since_epoch();

	return std::chrono::duration<double>(now).count();
}

int
main(int argc, char **argv)
{
	long us = argc > 1 ? atol(argv[1]) : 1000;
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	double start = argc > 3 && atof(argv[3]) > 0 ? atof(argv[3]) : 0;
	bool waits = argc > 4 && strcmp(argv[4], "-wait") == 0;
	int batch = waits || us > 50000 ? 1 : (int)(50000 / us);
	long counted = 0, done = 0;
	cudaEvent_t events[2];
	double now;

	REQUIRE(us > 0 && seconds > 0);
	for (cudaEvent_t &event : events)
		CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	stay<<<1, 1>>>(1000);
	CHECK(cudaDeviceSynchronize());
	while (start > seconds_now())
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	start = seconds_now();
	for (long round = 0;; round++) {
		for (int i = 0; i < batch; i++)
			stay<<<1, 1>>>(1000ull * us);
		CHECK(cudaEventRecord(events[round % 2]));
		if (waits)
			CHECK(cudaEventSynchronize(events[round % 2]));
		else if (round > 0)
			CHECK(cudaEventSynchronize(events[(round + 1) % 2]));
		now = seconds_now();
		done += waits || round > 0 ? batch : 0;
		if (now - start > seconds)
			break;
		counted = done;
	}
	CHECK(cudaGetLastError());
	printf("%ld\n", counted);
	return app_ok("timeshare");
}
