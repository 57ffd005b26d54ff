/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the device and the CPU reference compute: bodies of mass m attract each other with
 * G = 1 and Plummer softening. One step is a kick and a drift: v += a(x) dt, x += v dt. That is
 * leapfrog with the velocities half a step behind the positions.
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

/* A ball of bodies of total mass 1 that turns slowly; the same for every run and precision. */
system_state<double> make_bodies(int count);

/* Advances by the given number of steps on the CPU: one thread, one plain loop. */
void step_on_cpu(system_state<double> &state, int steps);
