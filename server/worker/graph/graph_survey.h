/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans a client's graph plan (protocol/graph_plan.h) before anything is built: it counts what the
 * plan is charged for and finds the graph root that it needs.
 *
 * Ownership: the caller owns the plan.
 * Threads: any; the functions only read their input.
 */
#ifndef GPD_GRAPH_SURVEY_H
#define GPD_GRAPH_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_graph_survey {
	uint32_t nodes; /* including those in bodies of conditions */
	uint64_t edges; /* including those in bodies */
	bool rooted;    /* it has conditions or updatable nodes ... */
	uint32_t root;  /* ... all of this root, by the client's name */
};

/* Returns false if the plan is invalid, has no node, or needs several roots. */
bool gpd_graph_survey(const void *plan, size_t size, struct gpd_graph_survey *survey);

#endif /* GPD_GRAPH_SURVEY_H */
