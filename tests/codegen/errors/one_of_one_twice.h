GP_STRUCT(CUfoo,
        ONE_OF(1, 2, 1) int a)
