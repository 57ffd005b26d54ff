/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a graph as gpGraphMake carries them in its bulk tail (wire.md, 9): a call each, with
 * the nodes before it that it depends on.  Reading bounds everything, and allocates nothing.
 */
#ifndef GP_GRAPH_PLAN_H
#define GP_GRAPH_PLAN_H

#include "protocol/enc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that a bulk tail may have. */
#define GP_GRAPH_PLAN_MAX ((size_t)16 << 20)

/* Conditions in bodies of conditions, and so on. */
#define GP_GRAPH_DEPTH_MAX 16
/* Instead of a call: bodies that are run as a number says that kernels set. */
#define GP_GRAPH_CONDITION 1u
/* A gpLaunch that kernels change: its fields come behind u64, the driver's name of the node. */
#define GP_GRAPH_UPDATABLE 2u

struct gp_graph_node {
	uint32_t call; /* gpLaunch, gpCopyDevice, gpFill; 0: nothing; GP_GRAPH_... */
	uint32_t count;
	struct gp_bytes dependencies; /* count numbers of 32 bits; each is higher than the last */
	struct gp_bytes fields;       /* of the call; its stream is 0 */
};

struct gp_graph_reader {
	const uint8_t *cur, *end;
	uint32_t read; /* nodes */
	bool bad;
};

void gp_graph_reader_init(struct gp_graph_reader *reader, const void *data, size_t size);
/* false: that was the last one, or reader->bad. */
bool gp_graph_read(struct gp_graph_reader *reader, struct gp_graph_node *node);
uint32_t gp_graph_dependency(const struct gp_graph_node *node, uint32_t index);

/* A node that is a condition: u64 handle, u32 type, u32 count, and so many bodies: u64 size, nodes.
 */
struct gp_graph_condition {
	uint64_t handle;
	uint32_t type, count;
	const uint8_t *cur, *end;
};

/* false: it is none. */
bool gp_graph_condition_init(struct gp_graph_condition *condition,
			     const struct gp_graph_node *node);
/* Its next body, count times; false: it is malformed. */
bool gp_graph_condition_body(struct gp_graph_condition *condition, struct gp_bytes *body);

/* Zeroed it is empty; the caller frees memory. */
struct gp_graph_writer {
	uint8_t *memory;
	size_t size, room;
	size_t last; /* where the last node begins */
};

/* One more node; the answer is room for its fields, aligned to 8, until the next one.  NULL: no
 * memory, or more than GP_GRAPH_PLAN_MAX.  dependencies: ascending. */
void *gp_graph_write(struct gp_graph_writer *writer, uint32_t call, const uint32_t *dependencies,
		     uint32_t count, size_t fields_size);

/* A condition behind these nodes; bodies: count writers, which stay the caller's.  false: no
 * memory, or too much. */
bool gp_graph_write_condition(struct gp_graph_writer *writer, const uint32_t *dependencies,
			      uint32_t dependency_count, uint64_t handle, uint32_t type,
			      const struct gp_graph_writer *bodies, uint32_t count);

/* The last node's fields, for which there is room, have turned out to be so long. */
void gp_graph_fit(struct gp_graph_writer *writer, size_t fields_size);

#endif /* GP_GRAPH_PLAN_H */
