/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding of a graph's nodes in the bulk data of gpGraphMake (wire.md, 6): each node is a call
 * with the indices of the earlier nodes that it depends on. Contains a reader and a writer. The
 * reader checks all bounds and allocates nothing.
 *
 * Ownership: the reader's results point into the bulk data, which must outlive them. A writer's
 * memory is freed by its caller with free().
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
/* In place of a call number: a conditional node, whose bodies (graphs) run depending on a value
 * that kernels set. */
#define GP_GRAPH_CONDITION 1u
/* In place of a call number: a device-updatable node, a gpLaunch that kernels may update. */
#define GP_GRAPH_UPDATABLE 2u

/* A decoded node. */
struct gp_graph_node {
	uint32_t call; /* gpLaunch, gpCopyDevice, gpFill; 0: an empty node; or GP_GRAPH_* */
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
/* Reads the next node. Returns true, or false at the end or if the data is malformed; reader->bad
 * is then true. */
bool gp_graph_read_node(struct gp_graph_reader *reader, struct gp_graph_node *node);
/* Returns the node index of a dependency; index: below node->count. */
uint32_t gp_graph_get_dependency(const struct gp_graph_node *node, uint32_t index);

/* A conditional node. On the wire: u64 handle, u32 type, u32 count, u32 root, u32 0, and `count`
 * bodies, each of u64 size and nodes. root: session's ID of the graph root, the driver graph in
 * which the handle was created; needed because two of them may use the same handle. */
struct gp_graph_condition {
	uint64_t handle;
	uint32_t type, count, root;
	const uint8_t *cur, *end;
};

/* Starts reading a conditional node. Returns true, or false if the node is not a conditional node
 * or is malformed. */
bool gp_graph_condition_init(struct gp_graph_condition *condition,
			     const struct gp_graph_node *node);
/* Reads the next body, to be read with a gp_graph_reader; called `count` times. Returns false if it
 * is malformed. */
bool gp_graph_condition_next_body(struct gp_graph_condition *condition, struct gp_bytes *body);

/* A device-updatable node. On the wire: u64 name, u32 root, u32 0, and the gpLaunch. */
struct gp_graph_updatable {
	/* the driver's handle of the node, which kernels use */
	uint64_t name;
	uint32_t root;
	struct gp_bytes launch;
};

/* Bytes before the gpLaunch. */
#define GP_GRAPH_UPDATABLE_HEAD 16

/* Decodes a device-updatable node. Returns true, or false if the node is not one or is
 * malformed. */
bool gp_graph_updatable_init(struct gp_graph_updatable *updatable,
			     const struct gp_graph_node *node);

/* Writer of a graph's bulk data, in `memory`, of which `size` bytes are used. Initialized to
 * zeros. */
struct gp_graph_writer {
	uint8_t *memory;
	size_t size, room;
	size_t last; /* offset of the last node */
};

/* Appends a node with zeroed fields. dependencies: node indices in ascending order. Returns space
 * for its fields, aligned to 8 and valid until the next node is added. NULL: out of memory, or
 * larger than GP_GRAPH_PLAN_MAX; the writer is unchanged. */
void *gp_graph_write_node(struct gp_graph_writer *writer, uint32_t call,
			  const uint32_t *dependencies, uint32_t count, size_t fields_size);

/* Appends a conditional node. bodies: condition->count writers, which remain the caller's. Returns
 * true, or false if out of memory or too large; the writer is then unchanged. */
bool gp_graph_write_condition(struct gp_graph_writer *writer, const uint32_t *dependencies,
			      uint32_t dependency_count, const struct gp_graph_condition *condition,
			      const struct gp_graph_writer *bodies);
/* Appends a device-updatable node. Returns space for a gpLaunch of `size` bytes, or NULL, as
 * gp_graph_write_node(). */
void *gp_graph_write_updatable(struct gp_graph_writer *writer, const uint32_t *dependencies,
			       uint32_t count, uint64_t name, uint32_t root, size_t size);

/* Reduces the last node's fields to fields_size, rounded up to a multiple of 8; used when the size
 * passed to gp_graph_write_node() was an upper bound. */
void gp_graph_shrink_last(struct gp_graph_writer *writer, size_t fields_size);

#endif /* GP_GRAPH_PLAN_H */
