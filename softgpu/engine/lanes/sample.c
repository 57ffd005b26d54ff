/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/lanes/sample.h"

#include "softgpu/engine/lanes/lane_math.h"

#include <string.h>

/* Steps of the interpolation weights. */
#define FRACTION 256.0f
/* Larger coordinates are equivalent to this one, which is safe to convert. */
#define FAR 1e9f

static bool
is_fraction(const struct gs_texture *texture)
{
	switch ((enum gs_texel)texture->kind) {
	case GS_TEXEL_UNORM:
	case GS_TEXEL_SNORM:
		return true;
	case GS_TEXEL_UINT:
	case GS_TEXEL_SINT:
		return !texture->as_integer && texture->channel_bytes < 4;
	default:
		return false;
	}
}

static u32
read_channel(const struct gs_texture *texture, const uint8_t *memory)
{
	bool is_signed = texture->kind == GS_TEXEL_SINT || texture->kind == GS_TEXEL_SNORM;
	u32 raw;
	s32 value;
	f32 most;

	if (texture->channel_bytes == 4) {
		memcpy(&raw, memory, 4);
		return raw;
	}
	if (texture->channel_bytes == 2) {
		u16 half;

		memcpy(&half, memory, 2);
		raw = half;
		value = is_signed ? (s16)half : (s32)half;
		most = is_signed ? 32767.0f : 65535.0f;
	} else {
		raw = *memory;
		value = is_signed ? (s8)*memory : (s32)*memory;
		most = is_signed ? 127.0f : 255.0f;
	}
	if (texture->kind == GS_TEXEL_FLOAT)
		return bits_of_f32(half_to_f32(raw));
	if (!is_fraction(texture))
		return (u32)value;
	return bits_of_f32((f32)value / most < -1.0f ? -1.0f : (f32)value / most);
}

static bool
gives_floats(const struct gs_texture *texture)
{
	return texture->kind == GS_TEXEL_FLOAT || is_fraction(texture);
}

static void
read_texel(const struct gs_texture *texture, const struct gs_texture_level *level, int64_t x,
	   int64_t y, int64_t z, u32 out[4])
{
	const uint8_t *memory = level->memory + (uint64_t)z * level->slice +
				(uint64_t)y * level->pitch +
				(uint64_t)x * texture->channels * texture->channel_bytes;

	out[1] = out[2] = 0;
	out[3] = gives_floats(texture) ? bits_of_f32(1.0f) : 1;
	for (unsigned int i = 0; i < texture->channels; i++)
		out[i] = read_channel(texture, memory + i * texture->channel_bytes);
}

/* Maps an index outside of the texture according to the address mode; -1: the border color. */
static int64_t
resolve(const struct gs_texture *texture, unsigned int axis, int64_t index, int64_t count)
{
	enum gs_address_mode mode = (enum gs_address_mode)texture->mode[axis];
	int64_t turn;

	if (index >= 0 && index < count)
		return index;
	if (mode == GS_ADDRESS_BORDER)
		return -1;
	if (!texture->is_normalized || mode == GS_ADDRESS_CLAMP)
		return index < 0 ? 0 : count - 1;
	turn = mode == GS_ADDRESS_WRAP ? count : 2 * count;
	index = (index % turn + turn) % turn;
	return index < count ? index : turn - 1 - index;
}

/* Reads the texel at indices that may be outside. */
static void
fetch(const struct gs_texture *texture, const struct gs_texture_level *level,
      const int64_t index[3], unsigned int axes, int64_t slice, u32 out[4])
{
	const int64_t counts[3] = { level->width, level->height, level->depth };
	int64_t at[3] = { 0, 0, slice };

	for (unsigned int i = 0; i < axes; i++) {
		at[i] = resolve(texture, i, index[i], counts[i]);
		if (at[i] >= 0)
			continue;
		for (unsigned int c = 0; c < 4; c++)
			out[c] = gives_floats(texture) ? bits_of_f32(texture->border[c])
						       : (u32)(s32)texture->border[c];
		return;
	}
	read_texel(texture, level, at[0], at[1], at[2], out);
}

static f32
near(f32 value)
{
	if (!(value > -FAR))
		return value != value ? 0.0f : -FAR;
	return value < FAR ? value : FAR;
}

struct corner {
	int64_t index[3];
	f32 weight[3]; /* weight of the next texel on the axis */
};

static struct corner
find_corner(const struct gs_texture *texture, const struct gs_texture_level *level, const f32 at[3],
	    unsigned int axes, f32 shift)
{
	const uint32_t counts[3] = { level->width, level->height, level->depth };
	struct corner corner = { { 0 }, { 0 } };

	for (unsigned int i = 0; i < axes; i++) {
		f32 c = near(texture->is_normalized ? at[i] * (f32)counts[i] : at[i]) - shift;
		f32 low = floorf(c);

		corner.index[i] = (int64_t)low;
		corner.weight[i] = floorf((c - low) * FRACTION + 0.5f) / FRACTION;
	}
	return corner;
}

static void
filter(const struct gs_texture *texture, const struct gs_texture_level *level, const f32 at[3],
       unsigned int axes, int64_t slice, u32 out[4])
{
	struct corner corner = find_corner(texture, level, at, axes, 0.5f);
	f32 sum[4] = { 0 };

	for (unsigned int k = 0; k < 1u << axes; k++) {
		int64_t index[3] = { corner.index[0], corner.index[1], corner.index[2] };
		f32 weight = 1.0f;
		u32 texel[4];

		for (unsigned int i = 0; i < axes; i++) {
			bool next = k >> i & 1;

			index[i] += next;
			weight *= next ? corner.weight[i] : 1.0f - corner.weight[i];
		}
		if (weight == 0.0f)
			continue;
		fetch(texture, level, index, axes, slice, texel);
		for (unsigned int c = 0; c < 4; c++)
			sum[c] += weight * f32_of_bits(texel[c]);
	}
	for (unsigned int c = 0; c < 4; c++)
		out[c] = bits_of_f32(sum[c]);
}

/* Integers are not filtered. */
static void
sample_level(const struct gs_texture *texture, uint32_t number, const f32 at[3], unsigned int axes,
	     int64_t slice, u32 out[4])
{
	const struct gs_texture_level *level = &texture->levels[number];
	struct corner corner;

	if (texture->is_linear && gives_floats(texture)) {
		filter(texture, level, at, axes, slice, out);
		return;
	}
	corner = find_corner(texture, level, at, axes, 0.0f);
	fetch(texture, level, corner.index, axes, slice, out);
}

static unsigned int
get_axis_count(enum gs_geometry geometry)
{
	switch (geometry) {
	case GS_GEOMETRY_1D:
	case GS_GEOMETRY_1D_LAYERED:
		return 1;
	case GS_GEOMETRY_3D:
		return 3;
	default:
		return 2;
	}
}

static int64_t
clamp_layer(const struct gs_texture *texture, uint32_t layer, uint32_t faces)
{
	uint32_t depth = texture->levels[0].depth / faces;

	if (depth == 0)
		return 0;
	return layer < depth ? layer : depth - 1;
}

/* Converts a direction to a face and coordinates on it. */
static int64_t
find_face(const f32 direction[3], f32 at[2])
{
	static const struct {
		s8 s_axis, s_sign, t_axis, t_sign;
	} faces[6] = {
		{ 2, -1, 1, -1 }, { 2, 1, 1, -1 }, { 0, 1, 2, 1 },
		{ 0, 1, 2, -1 },  { 0, 1, 1, -1 }, { 0, -1, 1, -1 },
	};
	f32 size[3] = { fabsf(direction[0]), fabsf(direction[1]), fabsf(direction[2]) };
	int axis = size[0] >= size[1] && size[0] >= size[2] ? 0 : size[1] >= size[2] ? 1 : 2;
	int face = axis * 2 + (direction[axis] < 0.0f);
	f32 largest = size[axis] > 0.0f ? size[axis] : 1.0f;

	at[0] = ((f32)faces[face].s_sign * direction[faces[face].s_axis] / largest + 1.0f) / 2.0f;
	at[1] = ((f32)faces[face].t_sign * direction[faces[face].t_axis] / largest + 1.0f) / 2.0f;
	return face;
}

/* Returns the slice, and the coordinates on its axes. */
static int64_t
find_slice(const struct gs_texture *texture, const struct gs_place *place, f32 at[3])
{
	memcpy(at, place->at, sizeof(place->at));
	switch (place->geometry) {
	case GS_GEOMETRY_1D_LAYERED:
	case GS_GEOMETRY_2D_LAYERED:
		return clamp_layer(texture, place->layer, 1);
	case GS_GEOMETRY_CUBE:
		return find_face(place->at, at);
	case GS_GEOMETRY_CUBE_LAYERED:
		return clamp_layer(texture, place->layer, 6) * 6 + find_face(place->at, at);
	default:
		return 0;
	}
}

static f32
get_level(const struct gs_texture *texture, f32 lod)
{
	f32 level = near(lod) + texture->bias, last = (f32)texture->level_count - 1.0f;

	if (level > texture->level_max)
		level = texture->level_max;
	if (level < texture->level_min)
		level = texture->level_min;
	level = level > last ? last : level;
	return level > 0.0f ? level : 0.0f;
}

float
gs_sample_level(const struct gs_texture *texture, enum gs_geometry geometry,
		const float steps[2][3])
{
	const struct gs_texture_level *level = &texture->levels[0];
	const uint32_t counts[3] = { level->width, level->height, level->depth };
	f32 longest = 0.0f;

	for (unsigned int i = 0; i < 2; i++) {
		f32 square = 0.0f;

		for (unsigned int k = 0; k < get_axis_count(geometry); k++) {
			f32 step =
				texture->is_normalized ? steps[i][k] * (f32)counts[k] : steps[i][k];

			square += step * step;
		}
		longest = square > longest ? square : longest;
	}
	return longest > 0.0f ? 0.5f * log2f(longest) : -FAR;
}

static void
sample_between(const struct gs_texture *texture, f32 level, const f32 at[3], unsigned int axes,
	       int64_t slice, u32 out[4])
{
	f32 low = floorf(level), weight = floorf((level - low) * FRACTION + 0.5f) / FRACTION;
	u32 upper[4];

	sample_level(texture, (uint32_t)low, at, axes, slice, out);
	if (weight == 0.0f || !gives_floats(texture) || (uint32_t)low + 1 >= texture->level_count)
		return;
	sample_level(texture, (uint32_t)low + 1, at, axes, slice, upper);
	for (unsigned int c = 0; c < 4; c++)
		out[c] = bits_of_f32((1.0f - weight) * f32_of_bits(out[c]) +
				     weight * f32_of_bits(upper[c]));
}

/* Whether the texture does not have the slice: it was created for another geometry. */
static bool
is_slice_missing(const struct gs_texture *texture, enum gs_geometry geometry, int64_t slice)
{
	return geometry != GS_GEOMETRY_3D && slice >= texture->levels[0].depth;
}

void
gs_sample(const struct gs_texture *texture, const struct gs_place *place, uint32_t out[4])
{
	unsigned int axes = get_axis_count(place->geometry);
	f32 at[3], level = get_level(texture, place->lod);
	int64_t slice = find_slice(texture, place, at);

	if (is_slice_missing(texture, place->geometry, slice))
		memset(out, 0, 4 * sizeof(*out));
	else if (texture->is_mip_linear)
		sample_between(texture, level, at, axes, slice, out);
	else
		sample_level(texture, (uint32_t)floorf(level + 0.5f), at, axes, slice, out);
}

void
gs_sample_texel(const struct gs_texture *texture, enum gs_geometry geometry, const int32_t at[3],
		uint32_t layer, uint32_t out[4])
{
	const struct gs_texture_level *level = &texture->levels[0];
	unsigned int axes = get_axis_count(geometry);
	bool layered = geometry == GS_GEOMETRY_1D_LAYERED || geometry == GS_GEOMETRY_2D_LAYERED;
	int64_t x = at[0], y = axes > 1 ? at[1] : 0, z = axes > 2 ? at[2] : 0;

	if (layered)
		z = clamp_layer(texture, layer, 1);
	if (x < 0 || y < 0 || z < 0 || x >= level->width || y >= level->height || z >= level->depth)
		memset(out, 0, 4 * sizeof(*out));
	else
		read_texel(texture, level, x, y, z, out);
}

void
gs_sample_gather(const struct gs_texture *texture, const struct gs_place *place,
		 unsigned int channel, uint32_t out[4])
{
	static const uint8_t steps[4][2] = { { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
	const struct gs_texture_level *level = &texture->levels[0];
	f32 at[3];
	int64_t slice = find_slice(texture, place, at);
	struct corner corner = find_corner(texture, level, at, 2, 0.5f);

	for (unsigned int k = 0; k < 4; k++) {
		const int64_t index[3] = { corner.index[0] + steps[k][0],
					   corner.index[1] + steps[k][1], 0 };
		u32 texel[4];

		fetch(texture, level, index, 2,
		      is_slice_missing(texture, place->geometry, slice) ? 0 : slice, texel);
		out[k] = texel[channel & 3];
	}
}
