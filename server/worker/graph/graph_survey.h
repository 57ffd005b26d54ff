/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client has sent as a graph (protocol/graph_plan.h), found before anything is made of it:
 * how much it is charged for, and which root it is made in.  Reads what it is given; any thread.
 */
#ifndef GPD_GRAPH_SURVEY_H
#define GPD_GRAPH_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_graph_survey {
	uint32_t nodes; /* bodies of conditions are counted, too */
	uint64_t edges; /* in bodies, too */
	bool rooted;    /* it has conditions, or nodes that kernels change... */
	uint32_t root;  /* ... all of this root, as the client names it */
};

/* false: it is no graph, has no node, or is of several roots. */
bool gpd_graph_survey(const void *plan, size_t size, struct gpd_graph_survey *survey);

#endif /* GPD_GRAPH_SURVEY_H */
