package bolt

const compactSuffix = ".compact"
