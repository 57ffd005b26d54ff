GP_STRUCT(CUfoo,
        ONE_OF(-1) unsigned int a)
