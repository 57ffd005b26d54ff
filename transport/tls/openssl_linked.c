/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/openssl.h"

bool
gp_openssl_open(void)
{
	return true;
}

const char *
gp_openssl_get_error(void)
{
	return "";
}
