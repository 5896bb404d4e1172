package csr

// HasFurtherNames is tested by itself with what [Parse] refuses before.
var HasFurtherNames = hasFurtherNames
