/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N-body system that the device and the CPU reference compute: bodies of mass m attract each other
 * with G = 1 and Plummer softening. A step is a kick and a drift: v += a(x) dt, x += v dt. That is
 * leapfrog integration with the velocities half a step before the positions.
 */
#pragma once

#include <vector>

template <typename real> struct alignas(16) vec4 {
	real x, y, z;
	real w; /* a position's mass; unused in a velocity */
};

template <typename real> struct system_state {
	std::vector<vec4<real>> position;
	std::vector<vec4<real>> velocity;
};

const double time_step = 0.001;
const double softening = 0.05;

/* Creates a slowly rotating ball of bodies with a total mass of 1, identical for every run and
 * precision. */
system_state<double> make_bodies(int count);

/* Advances the system by the given number of steps on the CPU, with a single thread and a plain
 * loop. */
void step_on_cpu(system_state<double> &state, int steps);
