/* SPDX-License-Identifier: Apache-2.0 */
/* makecertificates FOLDER: writes the certificates of certificates.h, for tests that are not C
 * programs. */
#include "tests/certificates.h"

#include <stdio.h>

int
main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	return certificates_make(argv[1]) ? 1 : 0;
}
