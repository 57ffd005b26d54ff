GP_KIND(count, TYPES(CUgraph))
