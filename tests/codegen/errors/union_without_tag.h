GP_STRUCT(CUfoo,
        WHEN(tag, 1) int a,
        int tag)
