GP_KIND((, TYPES(CUgraph))
