/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/client_address_name.h"
#include "tests/test.h"

UNIT_TEST(address_is_named_without_port_and_a_network_of_ipv6_is_one)
{
	static const char *const names[][2] = {
		{ "tcp://10.1.2.3:4711", "10.1.2.3" },
		{ "tls://10.1.2.3:1", "10.1.2.3" },
		{ "tcp://[::1]:4711", "loopback" },
		{ "tcp://127.0.0.1:4711", "loopback" },
		{ "tls://127.200.3.4:4711", "loopback" },
		{ "tcp://[::ffff:127.0.0.9]:4711", "loopback" },
		{ "tcp://128.0.0.1:4711", "128.0.0.1" },
		{ "tcp://[2001:db8:1:2:3:4:5:6]:80", "2001:db8:1:2::/64" },
		{ "tls://[2001:db8:1:2:ffff::1]:81", "2001:db8:1:2::/64" },
		{ "tcp://[fe80::1%eth0]:9", "fe80::/64" },
		{ "tcp://[::ffff:10.1.2.3]:4", "10.1.2.3" },
		{ "unix:///run/gpupool/gpupool.sock", "/run/gpupool/gpupool.sock" },
	};
	char name[GPD_CLIENT_ADDRESS_NAME_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		gpd_client_address_name(names[i][0], NULL, name);
		assert_string_equal(name, names[i][1]);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
