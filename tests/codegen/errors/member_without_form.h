GP_STRUCT(CUfoo,
        CUbar a)
