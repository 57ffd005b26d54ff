/* SPDX-License-Identifier: Apache-2.0 */
/* A PEM file as all that TLS wants: certificate, key and authority, of a daemon and of a client;
 * and as a certificate of the pool's, which gpupoolctl shows. */
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("pem", MFD_CLOEXEC);
	struct gp_tls_files files;
	char path[64], error[512];

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	files = (struct gp_tls_files){ .certificate = path, .key = path };
	for (int i = 0; i < 4; i++) {
		struct gp_tls *tls = NULL;
		int r;

		files.authority = i & 1 ? path : NULL;
		error[0] = 0;
		r = i & 2 ? gp_tls_create_client(&files, &tls, error, sizeof(error))
			  : gp_tls_create_server(&files, &tls, error, sizeof(error));
		check(r == 0 || error[0]);
		gp_tls_unref(tls);
	}
	close(fd);
	return 0;
}
