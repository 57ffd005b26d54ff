/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N-body system that the device and the CPU reference simulate.
 *
 * Bodies of mass m attract each other with G = 1 and Plummer softening. A step is a kick and a
 * drift: v += a(x) dt, x += v dt. This is leapfrog integration with the velocities half a step
 * before the positions.
 * Units: arbitrary (G = 1).
 */
#pragma once

#include <vector>

/* Position or velocity of a body. */
template <typename real> struct alignas(16) vec4 {
	real x, y, z;
	real w; /* mass in a position; unused in a velocity */
};

/* State of all bodies; both vectors have one element per body. */
template <typename real> struct system_state {
	std::vector<vec4<real>> position;
	std::vector<vec4<real>> velocity;
};

/* Duration of a step; and Plummer's softening length, which limits the forces of close bodies. */
const double time_step = 0.001;
const double softening = 0.05;

/* Returns a slowly rotating ball of `count` bodies with a total mass of 1, identical for every run
 * and precision. */
system_state<double> make_bodies(int count);

/* Advances the system by `steps` steps on the CPU, in double precision, with a single thread and a
 * plain loop. */
void step_on_cpu(system_state<double> &state, int steps);
