GP_KIND(river, TYPES(CUstream), COST(64))
