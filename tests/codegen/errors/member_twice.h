GP_STRUCT(CUfoo,
        int a,
        int a)
