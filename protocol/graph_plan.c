/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/graph_plan.h"

#include "protocol/little_endian.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define NODE_HEADER_SIZE 16
#define CONDITION_HEADER_SIZE 24

static size_t
pad_size(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

void
gp_graph_reader_init(struct gp_graph_reader *reader, const void *data, size_t size)
{
	*reader = (struct gp_graph_reader){ .cur = data, .end = (const uint8_t *)data + size };
}

uint32_t
gp_graph_get_dependency(const struct gp_graph_node *node, uint32_t index)
{
	return gp_read_le32((const uint8_t *)node->dependencies.data + (size_t)4 * index);
}

static bool
depends_on_earlier(const struct gp_graph_node *node, uint32_t number)
{
	uint64_t least = 0;

	for (uint32_t i = 0; i < node->count; i++) {
		uint32_t dependency = gp_graph_get_dependency(node, i);

		if (dependency < least || dependency >= number)
			return false;
		least = (uint64_t)dependency + 1;
	}
	return true;
}

bool
gp_graph_read_node(struct gp_graph_reader *reader, struct gp_graph_node *node)
{
	size_t left = (size_t)(reader->end - reader->cur), dependencies, fields;

	if (reader->bad || left == 0)
		return false;
	reader->bad = true;
	if (left < NODE_HEADER_SIZE)
		return false;
	node->call = gp_read_le32(reader->cur);
	node->count = gp_read_le32(reader->cur + 4);
	fields = gp_read_le32(reader->cur + 8);
	left -= NODE_HEADER_SIZE;
	dependencies = pad_size((size_t)4 * node->count);
	if (gp_read_le32(reader->cur + 12) != 0 || node->count > reader->read ||
	    dependencies > left || fields % 8 != 0 || fields > left - dependencies)
		return false;
	node->dependencies =
		(struct gp_bytes){ reader->cur + NODE_HEADER_SIZE, (size_t)4 * node->count };
	node->fields = (struct gp_bytes){ reader->cur + NODE_HEADER_SIZE + dependencies, fields };
	if (!depends_on_earlier(node, reader->read))
		return false;
	reader->cur += NODE_HEADER_SIZE + dependencies + fields;
	reader->read++;
	reader->bad = false;
	return true;
}

bool
gp_graph_condition_init(struct gp_graph_condition *condition, const struct gp_graph_node *node)
{
	const uint8_t *fields = node->fields.data;

	if (node->call != GP_GRAPH_CONDITION || node->fields.size < CONDITION_HEADER_SIZE)
		return false;
	*condition = (struct gp_graph_condition){
		.handle = gp_read_le64(fields),
		.type = gp_read_le32(fields + 8),
		.count = gp_read_le32(fields + 12),
		.root = gp_read_le32(fields + 16),
		.cur = fields + CONDITION_HEADER_SIZE,
		.end = fields + node->fields.size,
	};
	return gp_read_le32(fields + 20) == 0 &&
	       condition->count <= (node->fields.size - CONDITION_HEADER_SIZE) / 8;
}

bool
gp_graph_condition_next_body(struct gp_graph_condition *condition, struct gp_bytes *body)
{
	size_t left = (size_t)(condition->end - condition->cur);
	uint64_t size;

	if (left < 8)
		return false;
	size = gp_read_le64(condition->cur);
	if (size > left - 8 || size % 8 != 0)
		return false;
	*body = (struct gp_bytes){ condition->cur + 8, (size_t)size };
	condition->cur += 8 + size;
	return true;
}

bool
gp_graph_updatable_init(struct gp_graph_updatable *updatable, const struct gp_graph_node *node)
{
	const uint8_t *fields = node->fields.data;

	if (node->call != GP_GRAPH_UPDATABLE || node->fields.size < GP_GRAPH_UPDATABLE_HEAD)
		return false;
	*updatable = (struct gp_graph_updatable){
		.node_handle = gp_read_le64(fields),
		.root = gp_read_le32(fields + 8),
		.launch = { fields + GP_GRAPH_UPDATABLE_HEAD,
			    node->fields.size - GP_GRAPH_UPDATABLE_HEAD },
	};
	return gp_read_le32(fields + 12) == 0;
}

static bool
writer_grow(struct gp_graph_writer *writer, size_t size)
{
	size_t capacity = writer->capacity ? writer->capacity : 4096;
	uint8_t *memory;

	if (size > GP_GRAPH_PLAN_MAX - writer->size)
		return false;
	while (capacity < writer->size + size)
		capacity *= 2;
	if (capacity == writer->capacity)
		return true;
	memory = realloc(writer->memory, capacity);
	if (!memory)
		return false;
	writer->memory = memory;
	writer->capacity = capacity;
	return true;
}

void *
gp_graph_write_node(struct gp_graph_writer *writer, uint32_t call, const uint32_t *dependencies,
		    uint32_t count, size_t fields_size)
{
	size_t fields = pad_size(fields_size), list = pad_size((size_t)4 * count);
	const uint32_t header[] = { htole32(call), htole32(count), htole32((uint32_t)fields), 0 };
	uint8_t *at;

	if (fields > GP_GRAPH_PLAN_MAX || !writer_grow(writer, NODE_HEADER_SIZE + list + fields))
		return NULL;
	at = writer->memory + writer->size;
	memset(at, 0, NODE_HEADER_SIZE + list + fields);
	memcpy(at, header, NODE_HEADER_SIZE);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t dependency = htole32(dependencies[i]);

		memcpy(at + NODE_HEADER_SIZE + (size_t)4 * i, &dependency, sizeof(dependency));
	}
	writer->last = writer->size;
	writer->size += NODE_HEADER_SIZE + list + fields;
	return at + NODE_HEADER_SIZE + list;
}

bool
gp_graph_write_condition(struct gp_graph_writer *writer, const uint32_t *dependencies,
			 uint32_t dependency_count, const struct gp_graph_condition *condition,
			 const struct gp_graph_writer *bodies)
{
	const uint64_t handle = htole64(condition->handle);
	const uint32_t words[] = { htole32(condition->type), htole32(condition->count),
				   htole32(condition->root) };
	size_t size = CONDITION_HEADER_SIZE;
	uint8_t *at;

	for (uint32_t i = 0; i < condition->count && size <= GP_GRAPH_PLAN_MAX; i++)
		size += 8 + bodies[i].size;
	at = gp_graph_write_node(writer, GP_GRAPH_CONDITION, dependencies, dependency_count, size);
	if (!at)
		return false;
	memcpy(at, &handle, sizeof(handle));
	memcpy(at + 8, words, sizeof(words));
	at += CONDITION_HEADER_SIZE;
	for (uint32_t i = 0; i < condition->count; i++) {
		uint64_t body = htole64(bodies[i].size);

		memcpy(at, &body, sizeof(body));
		if (bodies[i].size > 0)
			memcpy(at + 8, bodies[i].memory, bodies[i].size);
		at += 8 + bodies[i].size;
	}
	return true;
}

void *
gp_graph_write_updatable(struct gp_graph_writer *writer, const uint32_t *dependencies,
			 uint32_t count, uint64_t node_handle, uint32_t root, size_t size)
{
	uint8_t *at = gp_graph_write_node(writer, GP_GRAPH_UPDATABLE, dependencies, count,
					  GP_GRAPH_UPDATABLE_HEAD + size);

	if (!at)
		return NULL;
	node_handle = htole64(node_handle);
	root = htole32(root);
	memcpy(at, &node_handle, sizeof(node_handle));
	memcpy(at + 8, &root, sizeof(root));
	return at + GP_GRAPH_UPDATABLE_HEAD;
}

void
gp_graph_shrink_last(struct gp_graph_writer *writer, size_t fields_size)
{
	uint8_t *at = writer->memory + writer->last + 8;
	uint32_t capacity = gp_read_le32(at), fields = htole32((uint32_t)pad_size(fields_size));

	memcpy(at, &fields, sizeof(fields));
	writer->size -= capacity - pad_size(fields_size);
}
