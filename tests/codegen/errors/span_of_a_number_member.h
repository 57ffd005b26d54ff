GP_STRUCT(CUfoo,
        SPAN(4) int dst)
