/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admission/listen.h"
#include "tests/test.h"
#include "transport/transport.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The daemon's name service and its sockets' addresses are the test's: the socket (of loopback, in
 * truth) of this name is bound to this address. */
#define NAME "some.test"
static int lookups;
static in_addr_t bound;

int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
	    struct addrinfo **list_p)
{
	static struct sockaddr_in address;
	static struct addrinfo found = { .ai_family = AF_INET,
					 .ai_socktype = SOCK_STREAM,
					 .ai_addrlen = sizeof(address),
					 .ai_addr = (struct sockaddr *)&address };

	if (!name || strcmp(name, NAME) != 0)
		return EAI_AGAIN;
	lookups++;
	address = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	*list_p = &found;
	return 0;
}

void
freeaddrinfo(struct addrinfo *list)
{
}

int
getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	int r = (int)syscall(SYS_getsockname, fd, address, length);

	if (r == 0 && address->sa_family == AF_INET)
		((struct sockaddr_in *)address)->sin_addr.s_addr = bound;
	return r;
}

static int
open_one(in_addr_t address)
{
	static struct gpd_listen listen;
	struct gpd_options options = { .listen_count = 1 };
	char error[256];
	int r;

	lookups = 0;
	bound = htonl(address);
	assert_int_equal(gp_url_parse("tcp://" NAME ":0", &options.listen[0], error, sizeof(error)),
			 0);
	r = gpd_listen_open(&listen, &options);
	assert_int_equal(lookups, 1);
	assert_int_equal(listen.count, r == 0);
	gpd_listen_close(&listen);
	return r;
}

UNIT_TEST(the_address_that_it_comes_to_counts)
{
	assert_int_equal(open_one(INADDR_LOOPBACK), 0);
	assert_int_equal(open_one(0x0a090001), -1);
	assert_int_equal(open_one(INADDR_ANY), -1);
}

UNIT_TEST_MAIN(NULL, NULL)
