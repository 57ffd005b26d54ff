/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding of a graph's nodes in the bulk data of gpGraphMake (wire.md, 6): each node is a call
 * with the indices of earlier nodes that it depends on. Contains a reader and a writer. The reader
 * checks all bounds and allocates nothing.
 *
 * Ownership: the reader's results point into the bulk data. A writer's memory is freed by its
 * caller.
 * Threads: one thread at a time per reader or writer.
 */
#ifndef GP_GRAPH_PLAN_H
#define GP_GRAPH_PLAN_H

#include "protocol/enc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum size of the bulk data. */
#define GP_GRAPH_PLAN_MAX ((size_t)16 << 20)

/* Maximum nesting of conditional nodes. */
#define GP_GRAPH_DEPTH_MAX 16
/* In place of a call number: a conditional node, whose bodies run depending on a value that kernels
 * set. */
#define GP_GRAPH_CONDITION 1u
/* In place of a call number: a gpLaunch that kernels may update (device-updatable node). */
#define GP_GRAPH_UPDATABLE 2u

struct gp_graph_node {
	uint32_t call; /* gpLaunch, gpCopyDevice, gpFill; 0: empty node; or GP_GRAPH_* */
	uint32_t count;
	struct gp_bytes dependencies; /* count u32 indices, in ascending order */
	struct gp_bytes fields;       /* fields of the call; its stream is 0 */
};

struct gp_graph_reader {
	const uint8_t *cur, *end;
	uint32_t read; /* nodes read so far */
	bool bad;
};

/* Starts reading the nodes in a buffer. */
void gp_graph_reader_init(struct gp_graph_reader *reader, const void *data, size_t size);
/* Reads the next node. Returns false at the end, or if the data is malformed (reader->bad). */
bool gp_graph_read_node(struct gp_graph_reader *reader, struct gp_graph_node *node);
/* Returns the node index of a dependency. */
uint32_t gp_graph_get_dependency(const struct gp_graph_node *node, uint32_t index);

/* A conditional node: u64 handle, u32 type, u32 count, u32 root, u32 0, and `count` bodies of u64
 * size and nodes. The root is named because the driver may use the same handle in two of them. */
struct gp_graph_condition {
	uint64_t handle;
	uint32_t type, count, root;
	const uint8_t *cur, *end;
};

/* Starts reading a conditional node. Returns false if the node is malformed. */
bool gp_graph_condition_init(struct gp_graph_condition *condition,
			     const struct gp_graph_node *node);
/* Reads the next body; called `count` times. Returns false if it is malformed. */
bool gp_graph_condition_next_body(struct gp_graph_condition *condition, struct gp_bytes *body);

/* A device-updatable node: u64 name (the driver's handle of the node), u32 root, u32 0, and the
 * gpLaunch. */
struct gp_graph_updatable {
	uint64_t name;
	uint32_t root;
	struct gp_bytes launch;
};

/* Bytes before the gpLaunch. */
#define GP_GRAPH_UPDATABLE_HEAD 16

/* Decodes a device-updatable node. Returns false if it is malformed. */
bool gp_graph_updatable_init(struct gp_graph_updatable *updatable,
			     const struct gp_graph_node *node);

/* Builds the bulk data of a graph. Initialized to zeros; the caller frees `memory`. */
struct gp_graph_writer {
	uint8_t *memory;
	size_t size, room;
	size_t last; /* offset of the last node */
};

/* Appends a node. Returns room for its fields, aligned to 8 and valid until the next node is added,
 * or NULL: out of memory, or larger than GP_GRAPH_PLAN_MAX. The dependencies are in ascending
 * order. */
void *gp_graph_write_node(struct gp_graph_writer *writer, uint32_t call,
			  const uint32_t *dependencies, uint32_t count, size_t fields_size);

/* Appends a conditional node. bodies: condition->count writers, which remain owned by the caller.
 * Returns false if out of memory or too large. */
bool gp_graph_write_condition(struct gp_graph_writer *writer, const uint32_t *dependencies,
			      uint32_t dependency_count, const struct gp_graph_condition *condition,
			      const struct gp_graph_writer *bodies);
/* Appends a device-updatable node. Like gp_graph_write_node(), returns room for a gpLaunch of this
 * size. */
void *gp_graph_write_updatable(struct gp_graph_writer *writer, const uint32_t *dependencies,
			       uint32_t count, uint64_t name, uint32_t root, size_t size);

/* Reduces the last node's fields to this size; used when their room was an upper bound. */
void gp_graph_shrink_last(struct gp_graph_writer *writer, size_t fields_size);

#endif /* GP_GRAPH_PLAN_H */
