/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans a client's graph plan (protocol/graph_plan.h), which is an encoded list of nodes and edges,
 * before anything is built: it counts what the plan is charged for and finds the graph root
 * (graph_root.h) that it needs.
 *
 * Ownership: the caller owns the plan, which is only read.
 * Threads: any; the function keeps no state.
 */
#ifndef GPD_GRAPH_SURVEY_H
#define GPD_GRAPH_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Result of a scan. */
struct gpd_graph_survey {
	uint32_t nodes; /* number of nodes, including those in bodies of conditional nodes */
	uint64_t edges; /* number of edges, including those in bodies */
	bool rooted;    /* it has conditional nodes or device-updatable nodes */
	uint32_t root;  /* with rooted: ID of the root to which all of them belong */
};

/* Scans the plan of size bytes. Returns true with *survey set; or false if the plan is invalid, has
 * no node, or needs several roots, and *survey is undefined. */
bool gpd_graph_survey(const void *plan, size_t size, struct gpd_graph_survey *survey);

#endif /* GPD_GRAPH_SURVEY_H */
