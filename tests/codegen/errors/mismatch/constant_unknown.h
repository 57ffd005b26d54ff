GP_SET(sample,
        CU_NOBODY_KNOWS)
