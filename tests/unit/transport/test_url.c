/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"
#include "transport/url.h"

#include <stdio.h>
#include <string.h>

static void
expect_url(const char *text, const char *scheme, const char *host, int port, int device)
{
	char error[400] = "";
	struct gp_url url;

	if (gp_url_parse(text, &url, error, sizeof(error)))
		fail_msg("%s", error);
	assert_string_equal(url.scheme, scheme);
	assert_string_equal(url.host, host);
	assert_int_equal(url.port, port);
	assert_int_equal(url.device, device);
}

static void
expect_error(const char *text, const char *what)
{
	struct gp_url url = { .port = 77 };
	char error[700] = "", expected[700];

	snprintf(expected, sizeof(expected), "\"%s\": %s", text, what);
	assert_int_equal(gp_url_parse(text, &url, error, sizeof(error)), GP_E_INVALID);
	assert_string_equal(error, expected);
	assert_int_equal(url.port, 77);
}

UNIT_TEST(scheme_port_and_device_have_defaults)
{
	expect_url("gpunode", "tcp", "gpunode", 4833, GP_URL_ANY_DEVICE);
	expect_url("gpunode:99", "tcp", "gpunode", 99, GP_URL_ANY_DEVICE);
	expect_url("gpunode/1", "tcp", "gpunode", 4833, 1);
	expect_url("tcp://10.0.0.1:0/0", "tcp", "10.0.0.1", 0, 0);
	expect_url("gpu-1.site_a.example:65535/1023", "tcp", "gpu-1.site_a.example", 65535, 1023);
	expect_url("*:4833", "tcp", "*", 4833, GP_URL_ANY_DEVICE);
}

UNIT_TEST(an_ipv6_address_stands_in_brackets)
{
	expect_url("[::1]", "tcp", "::1", 4833, GP_URL_ANY_DEVICE);
	expect_url("tcp://[fe80::1%eth0]:5/2", "tcp", "fe80::1%eth0", 5, 2);
	expect_url("[::]/3", "tcp", "::", 4833, 3);
	expect_error("::1", "an IPv6 address needs brackets: [address]:port");
	expect_error("fe80::1:4833", "an IPv6 address needs brackets: [address]:port");
	expect_error("[::1", "the ']' after the address is missing");
	expect_error("[::1]4833", "the text after ']' is neither a port nor a device");
	expect_error("[]:1", "the host is missing");
}

UNIT_TEST(a_loop_has_a_name_and_no_port)
{
	expect_url("rdma://node/1", "rdma", "node", 4833, 1);
	expect_url("rdma+tcp://[::1]:1", "rdma+tcp", "::1", 1, GP_URL_ANY_DEVICE);
	expect_error("rdma+udp://node",
		     "unknown scheme \"rdma+udp\" (known: tls, tcp, unix, rdma, rdma+tcp)");
}

UNIT_TEST(a_local_socket_is_a_path)
{
	expect_url("unix:///run/gpupool/gpupool.sock", "unix", "/run/gpupool/gpupool.sock", 0,
		   GP_URL_ANY_DEVICE);
	expect_url("unix:///a:1/2", "unix", "/a:1/2", 0, GP_URL_ANY_DEVICE);
	expect_error("unix://", "no absolute path (unix:///run/gpupool/gpupool.sock)");
	expect_error("unix:///", "no absolute path (unix:///run/gpupool/gpupool.sock)");
	expect_error("unix://run/a", "no absolute path (unix:///run/gpupool/gpupool.sock)");
	expect_error("unix:///a b", "character ' ' in the path");
	expect_error("unix:///a,b", "character ',' in the path");
	expect_error(
		"unix:///0123456789012345678901234567890123456789012345678901234567890123456789"
		"0123456789012345678901234567890123456",
		"the path is longer than 107 characters");
}

UNIT_TEST(what_is_wrong_is_named)
{
	expect_error("", "the host is missing");
	expect_error("tcp://", "the host is missing");
	expect_error(":4833", "the host is missing");
	expect_error("/1", "the host is missing");
	expect_error("http://a", "unknown scheme \"http\" (known: tls, tcp, unix, rdma, rdma+tcp)");
	expect_error("://a", "unknown scheme \"\" (known: tls, tcp, unix, rdma, rdma+tcp)");
	expect_error("TCP://a", "unknown scheme \"TCP\" (known: tls, tcp, unix, rdma, rdma+tcp)");
	expect_error("tls://tls://a", "there are two schemes");
	expect_error("tls://tcp://a:1/0", "there are two schemes");
	expect_error("a:", "the port is missing");
	expect_error("a:65536", "the port 65536 is above 65535");
	expect_error("a:99999999999999999999", "the port 99999999999999999999 is above 65535");
	expect_error("a:80x", "the port \"80x\" is not a number");
	expect_error("a:-1", "the port \"-1\" is not a number");
	expect_error("a/", "the device is missing");
	expect_error("a/gpu0", "the device \"gpu0\" is not a number");
	expect_error("a/1024", "the device 1024 is above 1023");
	expect_error("a/1/2", "the device \"1/2\" is not a number");
	expect_error("a b", "character ' ' in the host");
	expect_error("user@host", "character '@' in the host");
}

UNIT_TEST(a_long_host_is_refused)
{
	char text[600], error[64] = "";
	struct gp_url url;

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(gp_url_parse(text, &url, error, sizeof(error)), GP_E_INVALID);
	assert_int_equal(strlen(error), sizeof(error) - 1);
	text[255] = 0;
	assert_int_equal(gp_url_parse(text, &url, error, sizeof(error)), 0);
	text[255] = 'a';
	text[256] = 0;
	assert_int_equal(gp_url_parse(text, &url, error, sizeof(error)), GP_E_INVALID);
}

UNIT_TEST(a_list_is_separated_by_commas)
{
	struct gp_url urls[3];
	char error[400] = "";
	int count = 0;

	assert_int_equal(
		gp_url_list_parse("a,tcp://b:1/2,unix:///s", urls, 3, &count, error, sizeof(error)),
		0);
	assert_int_equal(count, 3);
	assert_string_equal(urls[0].host, "a");
	assert_int_equal(urls[1].device, 2);
	assert_string_equal(urls[2].host, "/s");
}

static void
expect_list_error(const char *text, const char *expected)
{
	struct gp_url urls[3];
	char error[400] = "";
	int count = 77;

	assert_int_equal(gp_url_list_parse(text, urls, 3, &count, error, sizeof(error)),
			 GP_E_INVALID);
	assert_string_equal(error, expected);
	assert_int_equal(count, 77);
}

UNIT_TEST(a_bad_list_names_the_item)
{
	expect_list_error("", "\"\": item 1 of the list is empty");
	expect_list_error("a,", "\"a,\": item 2 of the list is empty");
	expect_list_error("a,,b", "\"a,,b\": item 2 of the list is empty");
	expect_list_error("a,b,c,d", "\"a,b,c,d\": more than 3 items in the list");
	expect_list_error("a,b:x", "\"b:x\": the port \"x\" is not a number");
}

UNIT_TEST(formatted_and_parsed_again_is_the_same)
{
	static const char *const texts[] = {
		"tcp://a:4833", "tcp://[::1]:1/0", "tcp://10.0.0.1:65535/12",
		"rdma://x:1",   "rdma://x:1/3",    "unix:///run/a:b/0",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char text[GP_URL_TEXT_MAX], error[400] = "";
		struct gp_url url;

		assert_int_equal(gp_url_parse(texts[i], &url, error, sizeof(error)), 0);
		gp_url_format(&url, text, sizeof(text));
		assert_string_equal(text, texts[i]);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
