/* SPDX-License-Identifier: Apache-2.0 */
#include "bodies.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace
{

/* Returns a number in [-1, 1), rounded to float so that both precisions start from the same
 * numbers. */
double
next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (float)((double)(*seed >> 40) / (1 << 23) - 1.0);
}

vec4<double>
acceleration(const std::vector<vec4<double>> &bodies, const vec4<double> &at)
{
	vec4<double> sum = {};

	for (const vec4<double> &body : bodies) {
		double dx = body.x - at.x;
		double dy = body.y - at.y;
		double dz = body.z - at.z;
		double r2 = dx * dx + dy * dy + dz * dz + softening * softening;
		double f = body.w / (r2 * std::sqrt(r2));
		sum.x += dx * f;
		sum.y += dy * f;
		sum.z += dz * f;
	}
	return sum;
}

} /* namespace */

system_state<double>
make_bodies(int count)
{
	system_state<double> state;
	uint64_t seed = 4833;

	while (state.position.size() < (size_t)count) {
		vec4<double> p = { next_random(&seed), next_random(&seed), next_random(&seed), 0 };
		if (p.x * p.x + p.y * p.y + p.z * p.z > 1.0)
			continue;
		/* Unequal masses, so that exchanged bodies are detected. */
		p.w = (float)((1.0 + 0.5 * next_random(&seed)) / count);
		state.position.push_back(p);
		state.velocity.push_back({ -0.25 * p.y, 0.25 * p.x, 0.0, 0.0 });
	}
	return state;
}

void
step_on_cpu(system_state<double> &state, int steps)
{
	size_t count = state.position.size();

	for (int step = 0; step < steps; step++) {
		for (size_t i = 0; i < count; i++) {
			vec4<double> a = acceleration(state.position, state.position[i]);
			state.velocity[i].x += a.x * time_step;
			state.velocity[i].y += a.y * time_step;
			state.velocity[i].z += a.z * time_step;
		}
		for (size_t i = 0; i < count; i++) {
			state.position[i].x += state.velocity[i].x * time_step;
			state.position[i].y += state.velocity[i].y * time_step;
			state.position[i].z += state.velocity[i].z * time_step;
		}
	}
}
