/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/trace_event.h"

void
gp_trace_event_encode(struct gp_enc *enc, const struct gp_trace_event *event)
{
	gp_enc_u64(enc, event->begin_ns);
	gp_enc_u64(enc, event->end_ns);
	gp_enc_u64(enc, event->kernel);
	gp_enc_u32(enc, event->stream);
	gp_enc_u32(enc, event->device);
	gp_enc_u32(enc, event->call);
	gp_enc_u32(enc, event->joined);
	gp_enc_bytes(enc, event->name);
	gp_enc_pad(enc);
}

bool
gp_trace_event_decode(struct gp_dec *dec, struct gp_trace_event *event)
{
	if (!gp_dec_ok(dec) || dec->cur == dec->end)
		return false;
	event->begin_ns = gp_dec_u64(dec);
	event->end_ns = gp_dec_u64(dec);
	event->kernel = gp_dec_u64(dec);
	event->stream = gp_dec_u32(dec);
	event->device = gp_dec_u32(dec);
	event->call = gp_dec_u32(dec);
	event->joined = gp_dec_u32(dec);
	event->name = gp_dec_bytes(dec);
	if (event->end_ns < event->begin_ns || event->name.size > GP_TRACE_NAME_MAX)
		dec->bad = true;
	return gp_dec_ok(dec);
}
