/* SPDX-License-Identifier: Apache-2.0 */
/* With name servers that are the test's. */
#include "base/clock.h"
#include "server/common/base/resolve.h"
#include "tests/test.h"

#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

static _Atomic unsigned int asked, lists;
static _Atomic bool answer;
static const struct addrinfo HINTS = { .ai_socktype = 7 };

/* In place of the C library's. */
int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
	    struct addrinfo **list_p)
{
	if (host && (hints->ai_flags & AI_NUMERICHOST) && strcmp(host, "1.2.3.4") != 0)
		return EAI_NONAME;
	if (host && !(hints->ai_flags & AI_NUMERICHOST)) {
		asked++;
		while (strcmp(host, "silent") == 0 && !answer)
			gp_nap(MS);
		if (strcmp(host, "unknown") == 0)
			return EAI_NODATA;
	}
	assert_int_equal(hints->ai_socktype, 7);
	*list_p = calloc(1, sizeof(**list_p));
	(*list_p)->ai_protocol = service ? atoi(service) : 0;
	lists++;
	return 0;
}

void
freeaddrinfo(struct addrinfo *list)
{
	lists--;
	free(list);
}

static int
resolve(const char *host, unsigned int timeout_ms)
{
	struct addrinfo *list = NULL;
	int result = gpd_resolve(host, "99", &HINTS, timeout_ms, &list);

	assert_true(result ? !list : list->ai_protocol == 99);
	if (list)
		freeaddrinfo(list);
	return result;
}

static int
setup(void **state)
{
	asked = 0;
	answer = false;
	return 0;
}

static void
nobody_is_asked_for_an_address(void **state)
{
	assert_int_equal(resolve("1.2.3.4", 1), 0);
	assert_int_equal(resolve(NULL, 1), 0);
	assert_int_equal(asked, 0);
}

static void
a_name_has_what_the_name_server_says(void **state)
{
	for (unsigned int timeout_ms = 0; timeout_ms <= 60000; timeout_ms += 60000) {
		assert_int_equal(resolve("known", timeout_ms), 0);
		assert_int_equal(resolve("unknown", timeout_ms), EAI_NODATA);
	}
	assert_int_equal(asked, 4);
	assert_int_equal(lists, 0);
}

static void
a_name_server_that_says_nothing_is_not_waited_for(void **state)
{
	uint64_t begin = gp_now_ns();

	assert_int_equal(resolve("silent", 100), EAI_AGAIN);
	assert_true(gp_now_ns() - begin >= 100 * MS);
	assert_true(gp_now_ns() - begin < 30000 * MS);
	/* What it says later nobody wants, and nobody has to free. */
	answer = true;
	while (asked != 1 || lists)
		gp_nap(MS);
	gp_nap(100 * MS);
	assert_int_equal(lists, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nobody_is_asked_for_an_address, setup),
		cmocka_unit_test_setup(a_name_has_what_the_name_server_says, setup),
		cmocka_unit_test_setup(a_name_server_that_says_nothing_is_not_waited_for, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
