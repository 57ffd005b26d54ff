/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/save.h"
#include "tests/test.h"

#include <stdlib.h>

static void
expect(const char *text, const char *tenant, const char *key, const char *value, const char *wanted)
{
	char *edited = ctl_save_edit(text, tenant, key, value);

	assert_non_null(edited);
	assert_string_equal(edited, wanted);
	free(edited);
}

UNIT_TEST(a_value_is_exchanged_and_nothing_else)
{
	expect("[tenant a]\nmemory = 1G\n", "a", "memory", "2G", "[tenant a]\nmemory = 2G\n");
	expect("# x\n[tenant a]\n  memory:1G\t; of all\nsm = 1\n", "a", "memory", "25%",
	       "# x\n[tenant a]\n  memory:25%\t; of all\nsm = 1\n");
	expect("[tenant a]\nmemory = 1G", "a", "memory", "2G", "[tenant a]\nmemory = 2G");
	/* A key of one device is another key, and so is one that only begins alike. */
	expect("[tenant a]\nmemory.1 = 1G\nmemory = 2G\n", "a", "memory", "3G",
	       "[tenant a]\nmemory.1 = 1G\nmemory = 3G\n");
	expect("[tenant a]\n# memory = 1G\nmemory = 2G ;\n", "a", "memory", "3G",
	       "[tenant a]\n# memory = 1G\nmemory = 3G ;\n");
}

UNIT_TEST(a_key_that_is_not_there_comes_behind_the_others)
{
	expect("[tenant a]\nsm = 1\n\n# of b\n[tenant b]\n", "a", "memory", "2G",
	       "[tenant a]\nsm = 1\nmemory = 2G\n\n# of b\n[tenant b]\n");
	expect("[tenant a]\nusers = x,\n  y\n", "a", "memory", "2G",
	       "[tenant a]\nusers = x,\n  y\nmemory = 2G\n");
	expect("[tenant a]", "a", "memory", "2G", "[tenant a]\nmemory = 2G\n");
	expect("[tenant a]\nsm = 1", "a", "memory.0", "2G", "[tenant a]\nsm = 1\nmemory.0 = 2G\n");
}

UNIT_TEST(the_section_is_that_of_the_tenant)
{
	expect("[tenant ab]\nmemory = 1G\n[ tenant\ta ] ; x\nmemory = 1G\n", "a", "memory", "2G",
	       "[tenant ab]\nmemory = 1G\n[ tenant\ta ] ; x\nmemory = 2G\n");
	expect("[device 0]\npolicy = none\n", "a", "memory", "2G",
	       "[device 0]\npolicy = none\n\n[tenant a]\nmemory = 2G\n");
	expect("", "a", "memory", "2G", "[tenant a]\nmemory = 2G\n");
	expect("# no end", "a", "memory", "2G", "# no end\n\n[tenant a]\nmemory = 2G\n");
}

UNIT_TEST_MAIN(NULL, NULL)
