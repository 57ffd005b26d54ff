/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation on a CUDA device, in one precision. Owns the device memory of its bodies.
 *
 * Threads: one thread.
 * Errors: a CUDA error ends the program with a message and status 1.
 */
#pragma once

#include "bodies.h"

#include <cuda_runtime.h>

template <typename real> class simulation
{
      public:
	simulation(const system_state<double> &start, int block_size);
	~simulation();
	simulation(const simulation &) = delete;
	simulation &operator=(const simulation &) = delete;

	/* Enqueues the steps, one launch each, on the default stream and does not wait. */
	void step(int steps);
	system_state<double> read() const;

      private:
	int count;
	int block_size;
	vec4<real> *position[2];
	vec4<real> *velocity;
	int current = 0;
};

void check_cuda(cudaError_t error, const char *what);
#define CUDA(call) check_cuda(call, #call)
