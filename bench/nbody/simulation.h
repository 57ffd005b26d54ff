/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation on a CUDA device, in one precision.
 *
 * Ownership: an object owns the device memory of its bodies; the destructor frees it. Not copyable.
 * Threads: one thread.
 * Errors: a CUDA error ends the program with a message and status 1.
 */
#pragma once

#include "bodies.h"

#include <cuda_runtime.h>

template <typename real> class simulation
{
      public:
	/* Allocates memory on the current device and copies the start state to it. block_size:
	 * threads per block. */
	simulation(const system_state<double> &start, int block_size);
	~simulation();
	simulation(const simulation &) = delete;
	simulation &operator=(const simulation &) = delete;

	/* Enqueues `steps` steps, one launch each, on the default stream. Does not wait. */
	void step(int steps);
	/* Waits for all steps and returns the state, converted to double. */
	system_state<double> read() const;

      private:
	int count;
	int block_size;
	vec4<real> *position[2]; /* the current positions, and those of the next step */
	vec4<real> *velocity;
	int current = 0; /* index of the positions after the last step */
};

/* Ends the program with status 1 and a message about the call `what` if error is not
 * cudaSuccess. */
void check_cuda(cudaError_t error, const char *what);
/* Calls a CUDA function and checks its result with check_cuda(). */
#define CUDA(call) check_cuda(call, #call)
