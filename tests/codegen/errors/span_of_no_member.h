GP_STRUCT(CUfoo,
        SPAN(size) CUdeviceptr dst,
        float size)
