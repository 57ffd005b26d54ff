/* SPDX-License-Identifier: Apache-2.0 */
/* Graph nodes on the wire: encoding and decoding, and rejection of damaged bytes. */
#include "protocol/graph_plan.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#define NODES 200

static void
write_nodes(struct gp_graph_writer *writer)
{
	uint32_t dependencies[NODES];

	for (uint32_t i = 0; i < NODES; i++) {
		uint32_t count = i < 5 ? i : 5;
		uint8_t *fields;

		for (uint32_t j = 0; j < count; j++)
			dependencies[j] = i - count + j;
		fields = gp_graph_write_node(writer, 7 + i, dependencies, count, 64 + i);
		assert_non_null(fields);
		assert_int_equal((uintptr_t)fields % 8, 0);
		memset(fields, (int)(i & 0x7f), i);
		gp_graph_shrink_last(writer, i);
	}
}

UNIT_TEST(test_what_is_written_is_read)
{
	struct gp_graph_writer writer = { 0 };
	struct gp_graph_reader reader;
	struct gp_graph_node node;

	write_nodes(&writer);
	gp_graph_reader_init(&reader, writer.memory, writer.size);
	for (uint32_t i = 0; i < NODES; i++) {
		const uint8_t *fields;

		assert_true(gp_graph_read_node(&reader, &node));
		assert_int_equal(node.call, 7 + i);
		assert_int_equal(node.count, i < 5 ? i : 5);
		assert_int_equal(node.fields.size, (i + 7) / 8 * 8);
		fields = node.fields.data;
		for (uint32_t j = 0; j < node.fields.size; j++)
			assert_int_equal(fields[j], j < i ? i & 0x7f : 0);
		for (uint32_t j = 0; j < node.count; j++)
			assert_int_equal(gp_graph_get_dependency(&node, j), i - node.count + j);
	}
	assert_false(gp_graph_read_node(&reader, &node));
	assert_false(reader.bad);
	free(writer.memory);
}

static bool
is_refused(const uint32_t *words, size_t count)
{
	struct gp_graph_reader reader;
	struct gp_graph_node node;

	gp_graph_reader_init(&reader, words, count * sizeof(*words));
	while (gp_graph_read_node(&reader, &node))
		;
	return reader.bad;
}

UNIT_TEST(test_what_is_no_plan_is_refused)
{
	const uint32_t fine[] = { 1, 0, 0, 0, 1, 1, 0, 0, 0, 0 };
	const uint32_t itself[] = { 1, 0, 0, 0, 1, 1, 0, 0, 1, 0 };
	const uint32_t first[] = { 1, 1, 0, 0, 0, 0 };
	const uint32_t twice[] = { 1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0, 0, 0 };
	const uint32_t reserved[] = { 1, 0, 0, 1 };
	const uint32_t long_fields[] = { 1, 0, 16, 0, 0, 0 };
	const uint32_t odd_fields[] = { 1, 0, 4, 0, 0, 0 };
	const uint32_t huge[] = { 1, 0, 0xfffffff8, 0 };
	const uint32_t many[] = { 1, 0xffffffff, 0, 0 };

	assert_false(is_refused(fine, 10));
	assert_true(is_refused(fine, 9));
	assert_true(is_refused(fine, 7));
	assert_true(is_refused(itself, 10));
	assert_true(is_refused(first, 6));
	assert_true(is_refused(twice, 14));
	assert_true(is_refused(reserved, 4));
	assert_true(is_refused(long_fields, 6));
	assert_true(is_refused(odd_fields, 6));
	assert_true(is_refused(huge, 4));
	assert_true(is_refused(many, 4));
	assert_false(is_refused(fine, 0));
}

/* How deep conditions lie in bodies of conditions; -1: it is malformed. */
static int
depth_of(const void *plan, size_t size)
{
	struct gp_graph_condition condition;
	struct gp_graph_reader reader;
	struct gp_graph_node node;
	struct gp_bytes body;
	int deepest = 0, depth;

	gp_graph_reader_init(&reader, plan, size);
	while (gp_graph_read_node(&reader, &node)) {
		if (node.call != GP_GRAPH_CONDITION)
			continue;
		if (!gp_graph_condition_init(&condition, &node))
			return -1;
		for (uint32_t i = 0; i < condition.count; i++) {
			if (!gp_graph_condition_next_body(&condition, &body))
				return -1;
			assert_true((const uint8_t *)body.data + body.size <=
				    (const uint8_t *)plan + size);
			depth = depth_of(body.data, body.size);
			if (depth < 0)
				return -1;
			deepest = depth + 1 > deepest ? depth + 1 : deepest;
		}
	}
	return reader.bad ? -1 : deepest;
}

/* A condition with an empty body, and one with the plan that was written. */
static void
wrap(struct gp_graph_writer *writer, uint64_t handle)
{
	const struct gp_graph_writer bodies[2] = { { 0 }, *writer };
	const struct gp_graph_condition condition = {
		.handle = handle, .type = 2, .count = 2, .root = 0x89abcdef
	};
	struct gp_graph_writer outer = { 0 };
	const uint32_t zero = 0;

	assert_non_null(gp_graph_write_node(&outer, 0, NULL, 0, 0));
	assert_true(gp_graph_write_condition(&outer, &zero, 1, &condition, bodies));
	free(writer->memory);
	*writer = outer;
}

UNIT_TEST(test_conditions_have_bodies)
{
	struct gp_graph_writer writer = { 0 };
	struct gp_graph_condition condition;
	struct gp_graph_reader reader;
	struct gp_graph_node node;
	struct gp_bytes body;

	assert_non_null(gp_graph_write_node(&writer, 9, NULL, 0, 24));
	for (uint64_t i = 1; i <= 3; i++)
		wrap(&writer, 0x123456789abcull * i);
	assert_int_equal(depth_of(writer.memory, writer.size), 3);
	gp_graph_reader_init(&reader, writer.memory, writer.size);
	assert_true(gp_graph_read_node(&reader, &node));
	assert_false(gp_graph_condition_init(&condition, &node));
	assert_true(gp_graph_read_node(&reader, &node));
	assert_int_equal(node.count, 1);
	assert_true(gp_graph_condition_init(&condition, &node));
	assert_int_equal(condition.handle, 0x123456789abcull * 3);
	assert_int_equal(condition.type, 2);
	assert_int_equal(condition.count, 2);
	assert_int_equal(condition.root, 0x89abcdef);
	assert_true(gp_graph_condition_next_body(&condition, &body));
	assert_int_equal(body.size, 0);
	assert_true(gp_graph_condition_next_body(&condition, &body));
	assert_int_equal(depth_of(body.data, body.size), 2);
	assert_false(gp_graph_condition_next_body(&condition, &body));
	assert_false(gp_graph_read_node(&reader, &node));
	/* With changed bytes, reading stays inside the buffer. */
	for (size_t at = 0; at < writer.size; at++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			writer.memory[at] ^= (uint8_t)(1u << bit);
			(void)depth_of(writer.memory, writer.size);
			writer.memory[at] ^= (uint8_t)(1u << bit);
		}
	}
	free(writer.memory);
}

UNIT_TEST(test_nodes_that_kernels_change_name_their_root)
{
	struct gp_graph_updatable updatable;
	struct gp_graph_writer writer = { 0 };
	struct gp_graph_reader reader;
	struct gp_graph_node node;
	void *launch;

	assert_non_null(gp_graph_write_node(&writer, 9, NULL, 0, 24));
	launch = gp_graph_write_updatable(&writer, &(uint32_t){ 0 }, 1, 0x123456789abcull, 7, 40);
	assert_non_null(launch);
	memset(launch, 5, 40);
	gp_graph_shrink_last(&writer, GP_GRAPH_UPDATABLE_HEAD + 32);
	gp_graph_reader_init(&reader, writer.memory, writer.size);
	assert_true(gp_graph_read_node(&reader, &node));
	assert_false(gp_graph_updatable_init(&updatable, &node));
	assert_true(gp_graph_read_node(&reader, &node));
	assert_int_equal(node.count, 1);
	assert_true(gp_graph_updatable_init(&updatable, &node));
	assert_int_equal(updatable.node_handle, 0x123456789abcull);
	assert_int_equal(updatable.root, 7);
	assert_int_equal(updatable.launch.size, 32);
	assert_int_equal(*(const uint8_t *)updatable.launch.data, 5);
	node.fields.size = GP_GRAPH_UPDATABLE_HEAD - 8;
	assert_false(gp_graph_updatable_init(&updatable, &node));
	assert_false(gp_graph_read_node(&reader, &node));
	assert_false(reader.bad);
	free(writer.memory);
}

/* Each byte of a plan changed, and each length: nothing is read that is not there. */
UNIT_TEST(test_damage_stays_inside)
{
	struct gp_graph_writer writer = { 0 };
	struct gp_graph_reader reader;
	struct gp_graph_node node;

	write_nodes(&writer);
	for (size_t at = 0; at < writer.size; at++) {
		size_t size = at % 3 ? writer.size : at;
		uint8_t *copy = malloc(size + 1);

		assert_non_null(copy);
		memcpy(copy, writer.memory, size);
		if (at < size)
			copy[at] ^= (uint8_t)(1u << at % 8);
		gp_graph_reader_init(&reader, copy, size);
		while (gp_graph_read_node(&reader, &node)) {
			assert_true(node.count < reader.read);
			assert_true((const uint8_t *)node.fields.data + node.fields.size <=
				    copy + size);
		}
		free(copy);
	}
	free(writer.memory);
}

UNIT_TEST(test_more_than_the_most_is_not_written)
{
	struct gp_graph_writer writer = { 0 };

	assert_null(gp_graph_write_node(&writer, 1, NULL, 0, GP_GRAPH_PLAN_MAX + 1));
	assert_null(gp_graph_write_node(&writer, 1, NULL, 0, GP_GRAPH_PLAN_MAX));
	assert_non_null(gp_graph_write_node(&writer, 1, NULL, 0, GP_GRAPH_PLAN_MAX - 64));
	assert_null(gp_graph_write_node(&writer, 1, NULL, 0, 64));
	free(writer.memory);
}

UNIT_TEST_MAIN(NULL, NULL)
