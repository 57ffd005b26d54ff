/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of graph nodes from a client: nodes that can be read are written, and read again with the
 * same result. */
#include "protocol/graph_plan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
copy_node(struct gp_graph_writer *writer, const struct gp_graph_node *node)
{
	uint32_t *dependencies = calloc((size_t)node->count + 1, sizeof(*dependencies));
	void *fields;

	if (!dependencies)
		abort();
	for (uint32_t i = 0; i < node->count; i++)
		dependencies[i] = gp_graph_get_dependency(node, i);
	fields = gp_graph_write_node(writer, node->call, dependencies, node->count,
				     node->fields.size);
	if (!fields)
		abort();
	memcpy(fields, node->fields.data, node->fields.size);
	free(dependencies);
}

/* Bodies of conditional nodes are inside their nodes, to any depth. */
static void
walk(const void *plan, size_t size, unsigned int depth)
{
	struct gp_graph_condition condition;
	struct gp_graph_reader reader;
	struct gp_graph_node node;
	struct gp_bytes body;

	gp_graph_reader_init(&reader, plan, size);
	while (depth < GP_GRAPH_DEPTH_MAX && gp_graph_read_node(&reader, &node)) {
		if (!gp_graph_condition_init(&condition, &node))
			continue;
		for (uint32_t i = 0; i < condition.count; i++) {
			if (!gp_graph_condition_next_body(&condition, &body))
				break;
			if ((const uint8_t *)body.data + body.size > (const uint8_t *)plan + size)
				abort();
			walk(body.data, body.size, depth + 1);
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_graph_writer writer = { 0 };
	struct gp_graph_reader reader;
	struct gp_graph_node node;
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	walk(copy, size, 0);
	gp_graph_reader_init(&reader, copy, size);
	while (gp_graph_read_node(&reader, &node))
		copy_node(&writer, &node);
	/* Between two dependencies and the fields padding may be anything. */
	if (writer.size != (size_t)(reader.cur - copy))
		abort();
	free(writer.memory);
	free(copy);
	return 0;
}
