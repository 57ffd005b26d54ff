/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding of a graph's nodes in the bulk data of gpGraphMake (wire.md, 6): each node is a call
 * with the indices of the earlier nodes that it depends on. Contains a reader and a writer. The
 * reader checks all bounds and allocates nothing.
 *
 * Ownership: the reader's results point into the bulk data, which must outlive them. The caller
 * frees the member `memory` of a writer with free().
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
	uint32_t call;  /* number of gpLaunch, gpCopyDevice or gpFill; 0: an empty node; or
			   GP_GRAPH_*; not checked */
	uint32_t count; /* number of dependencies */
	struct gp_bytes dependencies; /* `count` u32 indices of earlier nodes, in ascending order */
	struct gp_bytes fields;       /* the call's fields, with stream 0; not checked */
};

/* Reader of the nodes in bulk data. */
struct gp_graph_reader {
	const uint8_t *cur, *end;
	uint32_t read; /* nodes read so far */
	bool bad;      /* the data is malformed */
};

/* Starts reading the nodes in a buffer. */
void gp_graph_reader_init(struct gp_graph_reader *reader, const void *data, size_t size);
/* Reads the next node. Returns true; or false with *node undefined: at the end, and reader->bad is
 * then false, or if the data is malformed, and reader->bad is then true. */
bool gp_graph_read_node(struct gp_graph_reader *reader, struct gp_graph_node *node);
/* Returns the node index of a dependency; index: below node->count. */
uint32_t gp_graph_get_dependency(const struct gp_graph_node *node, uint32_t index);

/* Fields of a conditional node. On the wire: u64 handle, u32 type, u32 count, u32 root, u32 0, and
 * `count` bodies, each of u64 size and nodes. */
struct gp_graph_condition {
	uint64_t handle; /* the driver's CUgraphConditionalHandle */
	/* type: CUgraphConditionalNodeType. count: number of bodies. root: session's ID of the
	 * graph root, the driver graph in which the handle was created; needed because two roots
	 * may use the same handle. */
	uint32_t type, count, root;
	const uint8_t *cur, *end; /* bodies that have not been read */
};

/* Starts reading a conditional node. Returns true; or false with *condition undefined if the node
 * is not a conditional node or is malformed. The caller checks handle, type, root and the nesting
 * (GP_GRAPH_DEPTH_MAX). */
bool gp_graph_condition_init(struct gp_graph_condition *condition,
			     const struct gp_graph_node *node);
/* Stores the next body, which the caller reads with a struct gp_graph_reader. Called
 * condition->count times. Returns true, or false if the body is malformed. Bytes after the last
 * body are not checked. */
bool gp_graph_condition_next_body(struct gp_graph_condition *condition, struct gp_bytes *body);

/* Fields of a device-updatable node. On the wire: u64 node_handle, u32 root, u32 0, and the fields
 * of the gpLaunch. */
struct gp_graph_updatable {
	/* the driver's handle of the node, which kernels use */
	uint64_t node_handle;
	uint32_t root; /* session's ID of the graph root, as in struct gp_graph_condition */
	struct gp_bytes launch; /* fields of the gpLaunch */
};

/* Bytes before the gpLaunch. */
#define GP_GRAPH_UPDATABLE_HEAD 16

/* Decodes a device-updatable node. Returns true; or false with *updatable undefined if the node is
 * not one or is malformed. The caller checks node_handle and root, and decodes the launch. */
bool gp_graph_updatable_init(struct gp_graph_updatable *updatable,
			     const struct gp_graph_node *node);

/* Writer of a graph's bulk data: the first `size` bytes of `memory`. The caller initializes it to
 * zeros. */
struct gp_graph_writer {
	uint8_t *memory;
	size_t size, capacity; /* bytes used, and capacity */
	size_t last;           /* offset of the last node */
};

/* Appends a node with zeroed fields. dependencies: `count` indices of earlier nodes in ascending
 * order; not checked. Returns space for its fields, aligned to 8 and valid until the next node is
 * appended. NULL: out of memory, or larger than GP_GRAPH_PLAN_MAX; the writer's nodes are
 * unchanged. */
void *gp_graph_write_node(struct gp_graph_writer *writer, uint32_t call,
			  const uint32_t *dependencies, uint32_t count, size_t fields_size);

/* Appends a conditional node. condition: `cur` and `end` are not used. bodies: condition->count
 * writers, which remain the caller's. Returns true, or false as gp_graph_write_node(). */
bool gp_graph_write_condition(struct gp_graph_writer *writer, const uint32_t *dependencies,
			      uint32_t dependency_count, const struct gp_graph_condition *condition,
			      const struct gp_graph_writer *bodies);
/* Appends a device-updatable node. Returns space for the fields of a gpLaunch of `size` bytes, or
 * NULL, as gp_graph_write_node(). */
void *gp_graph_write_updatable(struct gp_graph_writer *writer, const uint32_t *dependencies,
			       uint32_t count, uint64_t node_handle, uint32_t root, size_t size);

/* Reduces the last node's fields to fields_size, rounded up to a multiple of 8, if the size passed
 * to gp_graph_write_node() was an upper bound. For a device-updatable node, fields_size is
 * GP_GRAPH_UPDATABLE_HEAD plus the size of the gpLaunch's fields. The writer has a node, whose
 * fields are not smaller. */
void gp_graph_shrink_last(struct gp_graph_writer *writer, size_t fields_size);

#endif /* GP_GRAPH_PLAN_H */
