/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans a client's graph plan (protocol/graph_plan.h), which is an encoded list of nodes and edges,
 * before anything is built. The scan counts the nodes and edges, which are charged to the session,
 * and finds the graph root that the plan needs: the driver graph that owns the conditional handles
 * and the device-updatable nodes of the plan (graph_root.h).
 *
 * Ownership: the caller owns the plan, which is only read.
 * Threads: any; the function keeps no state.
 */
#ifndef GPD_GRAPH_SCAN_H
#define GPD_GRAPH_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Result of a scan. */
struct gpd_graph_scan {
	/* Number of nodes in the plan and in all bodies of its conditional nodes, plus the number
	 * of bodies. */
	uint32_t nodes;
	uint64_t edges; /* number of edges, including those in bodies */
	/* The plan has conditional or device-updatable nodes, and so needs a root. */
	bool needs_root;
	/* Client's ID of the root to which all these nodes belong; 0 without `needs_root`. */
	uint32_t root;
};

/* Scans the plan, of size bytes from the client, unchecked. Checks the encoding of the nodes' list,
 * not the fields of the nodes. Returns true with *scan set. Returns false, and *scan is not usable,
 * if the plan is invalid, has no node, is nested deeper than GP_GRAPH_DEPTH_MAX
 * (protocol/graph_plan.h), or needs several roots. */
bool gpd_graph_scan(const void *plan, size_t size, struct gpd_graph_scan *scan);

#endif /* GPD_GRAPH_SCAN_H */
