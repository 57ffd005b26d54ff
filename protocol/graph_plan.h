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
/* A gpLaunch that kernels change. */
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
bool gp_graph_read_node(struct gp_graph_reader *reader, struct gp_graph_node *node);
uint32_t gp_graph_get_dependency(const struct gp_graph_node *node, uint32_t index);

/* A node that is a condition: u64 handle, u32 type, u32 count, u32 root, u32 0, and so many bodies:
 * u64 size, nodes.  The root is named, for the driver may give the same handle in two of them. */
struct gp_graph_condition {
	uint64_t handle;
	uint32_t type, count, root;
	const uint8_t *cur, *end;
};

/* false: it is none. */
bool gp_graph_condition_init(struct gp_graph_condition *condition,
			     const struct gp_graph_node *node);
/* Its next body, count times; false: it is malformed. */
bool gp_graph_condition_next_body(struct gp_graph_condition *condition, struct gp_bytes *body);

/* A node that kernels change: u64 the driver's name of it, u32 root, u32 0, and the gpLaunch. */
struct gp_graph_updatable {
	uint64_t name;
	uint32_t root;
	struct gp_bytes launch;
};

/* How much is in front of the gpLaunch. */
#define GP_GRAPH_UPDATABLE_HEAD 16

/* false: it is none. */
bool gp_graph_updatable_init(struct gp_graph_updatable *updatable,
			     const struct gp_graph_node *node);

/* Zeroed it is empty; the caller frees memory. */
struct gp_graph_writer {
	uint8_t *memory;
	size_t size, room;
	size_t last; /* where the last node begins */
};

/* One more node; the answer is room for its fields, aligned to 8, until the next one.  NULL: no
 * memory, or more than GP_GRAPH_PLAN_MAX.  dependencies: ascending. */
void *gp_graph_write_node(struct gp_graph_writer *writer, uint32_t call,
			  const uint32_t *dependencies, uint32_t count, size_t fields_size);

/* A condition behind these nodes; bodies: condition->count writers, which stay the caller's.
 * false: no memory, or too much. */
bool gp_graph_write_condition(struct gp_graph_writer *writer, const uint32_t *dependencies,
			      uint32_t dependency_count, const struct gp_graph_condition *condition,
			      const struct gp_graph_writer *bodies);
/* A node that kernels change: as gp_graph_write_node(), with room for the gpLaunch, of this size.
 */
void *gp_graph_write_updatable(struct gp_graph_writer *writer, const uint32_t *dependencies,
			       uint32_t count, uint64_t name, uint32_t root, size_t size);

/* The last node's fields, for which there is room, have turned out to be so long. */
void gp_graph_shrink_last(struct gp_graph_writer *writer, size_t fields_size);

#endif /* GP_GRAPH_PLAN_H */
