GP_STRUCT(CUfoo,
        int)
