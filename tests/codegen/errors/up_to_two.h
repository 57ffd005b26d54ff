GP_STRUCT(CUfoo,
        UP_TO(1, 2) int a)
