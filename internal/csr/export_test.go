package csr

// HasFurtherNames is exported to test input that [Parse] refuses earlier.
var HasFurtherNames = hasFurtherNames
