/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"
#include "simulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

static void
print_rates(const options &opt, int bodies, double milliseconds)
{
	double interactions = (double)bodies * bodies * opt.iterations;
	double rate = interactions / (milliseconds * 1e6);

	printf("%d bodies, total time for %d iterations: %.3f ms\n", bodies, opt.iterations,
	       milliseconds);
	printf("= %.3f billion interactions per second\n", rate);
	printf("= %.3f %s-precision GFLOP/s at 20 flops per interaction\n", rate * 20,
	       opt.fp64 || opt.cpu ? "double" : "single");
}

static int
benchmark_cpu(const options &opt)
{
	system_state<double> state = make_bodies(opt.bodies);
	auto start = std::chrono::steady_clock::now();

	step_on_cpu(state, opt.iterations);
	std::chrono::duration<double, std::milli> elapsed =
		std::chrono::steady_clock::now() - start;
	printf("> CPU reference, one thread\n");
	print_rates(opt, opt.bodies, elapsed.count());
	return 0;
}

template <typename real>
static int
benchmark(const options &opt, int bodies)
{
	simulation<real> device(make_bodies(bodies), opt.block_size);
	cudaEvent_t start, stop;
	float milliseconds;

	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&stop));
	/* The first launch loads the kernel and is not measured. */
	device.step(1);
	CUDA(cudaDeviceSynchronize());

	CUDA(cudaEventRecord(start));
	device.step(opt.iterations);
	CUDA(cudaEventRecord(stop));
	CUDA(cudaEventSynchronize(stop));
	CUDA(cudaEventElapsedTime(&milliseconds, start, stop));

	print_rates(opt, bodies, milliseconds);
	CUDA(cudaEventDestroy(start));
	CUDA(cudaEventDestroy(stop));
	return 0;
}

static double
distance(const vec4<double> &a, const vec4<double> &b)
{
	return std::sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) +
			 (a.z - b.z) * (a.z - b.z));
}

/*
 * Returns the largest error of a body's change, relative to the largest change. Compares changes
 * rather than values, because a small step hardly changes the values, even if the result is wrong.
 */
static double
relative_error(const std::vector<vec4<double>> &start, const std::vector<vec4<double>> &expected,
	       const std::vector<vec4<double>> &got)
{
	double change = 0;
	double error = 0;

	for (size_t i = 0; i < start.size(); i++) {
		double off = distance(got[i], expected[i]);
		if (!std::isfinite(off))
			return INFINITY;
		change = std::max(change, distance(expected[i], start[i]));
		error = std::max(error, off);
	}
	if (change == 0)
		return error == 0 ? 0 : INFINITY;
	return error / change;
}

template <typename real>
static int
compare(const options &opt)
{
	/*
	 * A single-precision position near 1 has 24 bits, the change of a small step about ten
	 * fewer: that is the lower bound of its tolerance.
	 */
	const bool wide = sizeof(real) == sizeof(double);
	const double velocity_tolerance = wide ? 1e-10 : 5e-4;
	const double position_tolerance = wide ? 1e-9 : 2e-3;
	system_state<double> start = make_bodies(opt.bodies);
	system_state<double> expected = start;
	simulation<real> device(start, opt.block_size);

	device.step(opt.iterations);
	step_on_cpu(expected, opt.iterations);
	system_state<double> got = device.read();

	double velocity = relative_error(start.velocity, expected.velocity, got.velocity);
	double position = relative_error(start.position, expected.position, got.position);
	bool pass = velocity <= velocity_tolerance && position <= position_tolerance;
	printf("%d bodies, %d iterations, device against CPU:\n", opt.bodies, opt.iterations);
	printf("max relative error: velocity %.3e (limit %.0e), position %.3e (limit %.0e)\n",
	       velocity, velocity_tolerance, position, position_tolerance);
	printf("%s\n", pass ? "PASS" : "FAIL");
	return pass ? 0 : 1;
}

static int
select_device(const options &opt, cudaDeviceProp *prop)
{
	int count;

	CUDA(cudaGetDeviceCount(&count));
	if (opt.device >= count) {
		fprintf(stderr, "nbody: there is no device %d, only %d of them\n", opt.device,
			count);
		return 1;
	}
	CUDA(cudaSetDevice(opt.device));
	CUDA(cudaGetDeviceProperties(prop, opt.device));
	printf("> %s precision floating point simulation\n", opt.fp64 ? "Double" : "Single");
	printf("> Compute %d.%d CUDA device %d: [%s]\n", prop->major, prop->minor, opt.device,
	       prop->name);
	return 0;
}

int
main(int argc, char **argv)
{
	options opt = parse_options(argc, argv);
	cudaDeviceProp prop;

	if (opt.cpu)
		return benchmark_cpu(opt);
	if (select_device(opt, &prop) != 0)
		return 1;
	if (opt.compare)
		return opt.fp64 ? compare<double>(opt) : compare<float>(opt);

	int bodies = opt.bodies ? opt.bodies : 1024 * prop.multiProcessorCount;
	return opt.fp64 ? benchmark<double>(opt, bodies) : benchmark<float>(opt, bodies);
}
