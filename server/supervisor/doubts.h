/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator has to know of the configuration and does not see in it: which file was read,
 * what of it does not do what it seems to (config_doubt.h), and what will expire.  Told in the log,
 * and, at a reload, to who asked for it.  Main thread of the supervisor.
 */
#ifndef GPD_DOUBTS_H
#define GPD_DOUBTS_H

#include "server/common/config/options.h"
#include "server/common/config/reloaded.h"
#include "server/supervisor/admission/admission.h"

/* At the start, when the first worker has told of the devices. */
void gpd_doubts_start(const struct gpd_admission *admission, const struct gpd_options *options);
/* Of all of it, when it is in force. */
void gpd_doubts_reload(const struct gpd_admission *admission, struct gpd_reloaded *reloaded);
/* Now and then: the log says once a day what will expire. */
void gpd_doubts_watch(const struct gpd_admission *admission, int64_t now_ms);

#endif /* GPD_DOUBTS_H */
