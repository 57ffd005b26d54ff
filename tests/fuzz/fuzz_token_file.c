/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of a client's token file: the token, and the certificates of the authority after it, as
 * TLS reads them. */
#include "protocol/token_text.h"
#include "transport/tls/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static void
read_authority(const uint8_t *data, size_t size)
{
	struct gp_tls_files files = { 0 };
	char path[64], error[512] = "";
	struct gp_tls *tls;
	int fd = memfd_create("token", MFD_CLOEXEC);

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	files.authority = path;
	if (gp_tls_create_client(&files, &tls, error, sizeof(error)) == 0)
		gp_tls_unref(tls);
	else
		check(error[0]);
	close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_token token, again;

	if (gp_token_find((const char *)data, size, &token) == 0) {
		check(gp_token_parse(token.text, strlen(token.text), &again) == 0);
		check(memcmp(&token, &again, sizeof(token)) == 0);
		check(memmem(data, size, token.text, GP_TOKEN_LENGTH));
	}
	/* Creating a TLS context takes far longer than everything else. */
	if (memmem(data, size, "-----BEGIN", 10))
		read_authority(data, size);
	return 0;
}
