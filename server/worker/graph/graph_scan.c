/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/graph/graph_scan.h"

#include "protocol/graph_plan.h"

static bool scan_nodes(const void *plan, size_t size, unsigned int depth,
		       struct gpd_graph_scan *scan);

/* false: earlier nodes belong to another root. */
static bool
scan_root(struct gpd_graph_scan *scan, uint32_t root)
{
	if (scan->needs_root && scan->root != root)
		return false;
	scan->needs_root = true;
	scan->root = root;
	return true;
}

static bool
scan_condition(const struct gp_graph_node *node, unsigned int depth, struct gpd_graph_scan *scan)
{
	struct gp_graph_condition condition;
	struct gp_bytes body;

	if (depth == GP_GRAPH_DEPTH_MAX || !gp_graph_condition_init(&condition, node) ||
	    !scan_root(scan, condition.root))
		return false;
	scan->nodes += condition.count;
	for (uint32_t i = 0; i < condition.count; i++) {
		if (!gp_graph_condition_next_body(&condition, &body) ||
		    !scan_nodes(body.data, body.size, depth + 1, scan))
			return false;
	}
	return true;
}

static bool
scan_updatable(const struct gp_graph_node *node, struct gpd_graph_scan *scan)
{
	struct gp_graph_updatable updatable;

	return gp_graph_updatable_init(&updatable, node) && scan_root(scan, updatable.root);
}

static bool
scan_nodes(const void *plan, size_t size, unsigned int depth, struct gpd_graph_scan *scan)
{
	struct gp_graph_reader reader;
	struct gp_graph_node node;

	gp_graph_reader_init(&reader, plan, size);
	while (gp_graph_read_node(&reader, &node)) {
		scan->edges += node.count;
		if (node.call == GP_GRAPH_CONDITION && !scan_condition(&node, depth, scan))
			return false;
		if (node.call == GP_GRAPH_UPDATABLE && !scan_updatable(&node, scan))
			return false;
	}
	scan->nodes += reader.read;
	return !reader.bad;
}

bool
gpd_graph_scan(const void *plan, size_t size, struct gpd_graph_scan *scan)
{
	*scan = (struct gpd_graph_scan){ 0 };
	return scan_nodes(plan, size, 0, scan) && scan->nodes > 0;
}
