/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stranger URL: a program without a session that finds the port for RDMA lanes.  Tries a ticket of
 * its own, no preamble, half of one, and an endless number of connections; prints the result of
 * each.
 */
#include "protocol/preamble.h"
#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

#define CONNECT_MS 5000
#define MANY 100

static int
knock(const struct gp_url *url, const void *preamble, size_t size, char *why, size_t why_size)
{
	struct gp_message message;
	struct gp_conn *conn;
	int r = gp_connect(url, preamble, size, CONNECT_MS, &conn, why, why_size);

	if (r)
		return r;
	r = gp_conn_recv(conn, &message);
	(void)snprintf(why, why_size, "a connection, and then %d", r);
	gp_conn_destroy(conn);
	return 0;
}

static void
try(const struct gp_url *url, const char *what, const void *preamble, size_t size)
{
	char why[400] = "";

	(void)knock(url, preamble, size, why, sizeof(why));
	printf("%s: %s\n", what, strrchr(why, ':') ? strrchr(why, ':') + 2 : why);
}

int
main(int argc, char **argv)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;
	char error[400];
	struct gp_url url;
	int refused = 0;

	if (argc != 2 || gp_url_parse(argv[1], &url, error, sizeof(error))) {
		fprintf(stderr, "usage: stranger URL\n");
		return 2;
	}
	gp_preamble_init(&preamble, GP_PREAMBLE_LANE, 0);
	gp_preamble_encode(&preamble, bytes);
	try(&url, "a ticket of zeros", bytes, sizeof(bytes));
	memset(preamble.ticket, 0x5a, sizeof(preamble.ticket));
	gp_preamble_encode(&preamble, bytes);
	try(&url, "a ticket of its own", bytes, sizeof(bytes));
	try(&url, "half a preamble", bytes, sizeof(bytes) / 2);
	try(&url, "no preamble", NULL, 0);
	for (int i = 0; i < MANY; i++)
		refused += knock(&url, bytes, sizeof(bytes), error, sizeof(error)) != 0;
	printf("refused %d of %d\n", refused, MANY);
	return 0;
}
