/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with the lists of revoked client certificates (transport/tls/crl.h), as a daemon knows
 * it.
 *
 * It is read again when it is another file, or when clients' certificates may be of other
 * authorities.  It is wrong while it cannot be read, is no such list, is not of the authority,
 * holds no more or not yet, or is not there though it was named or was there before; then no
 * certificate is good.  Where no client is asked for a certificate nobody looks at it, and one that
 * is named is refused.
 *
 * Main thread of the supervisor.  Returns are those of shared_file.h.
 */
#ifndef GPD_CRL_FILE_H
#define GPD_CRL_FILE_H

#include "base/status.h"
#include "server/common/base/shared_file.h"
#include "transport/tls/crl.h"

#include <stdbool.h>
#include <stdint.h>

struct gpd_crl_file {
	struct gpd_shared_file file;
	bool needed;        /* it is wrong if it is not there */
	struct gp_tls *tls; /* it was read with; NULL: there was none */
	struct gp_crl *crl; /* what it said when it could be used last; NULL: nobody's is revoked */
};

/* Reads it for the first time; NULL: there can be none.  named: it was asked for, and is not just
 * where it usually is. */
GP_MUST_CHECK int gpd_crl_file_open(struct gpd_crl_file *file, const char *path, bool named);
/* Reads it again if need be.  While it cannot be used `crl` stays what it was. */
enum gpd_shared_file_change gpd_crl_file_refresh(struct gpd_crl_file *file, int64_t now_ms);
/* The log says if it will expire in so many seconds. */
#define GPD_CRL_SOON_S ((int64_t)7 * 86400)
void gpd_crl_file_check(const struct gpd_crl_file *file);
void gpd_crl_file_close(struct gpd_crl_file *file);

#endif /* GPD_CRL_FILE_H */
