GP_KIND(graph, TYPES(CUgraph), COST(0))
