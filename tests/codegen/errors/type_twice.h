GP_ENUM(CUfoo)
GP_SET(CUfoo, 8)
