GP_KIND(graph, TYPES(CUgraph), ORDERED)
