GP_STRUCT(CUfoo,
        int x[0])
