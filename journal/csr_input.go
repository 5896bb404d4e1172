package journal

// CSRInput is the input of an approve-csr.
type CSRInput struct {
	// Fingerprint is [CSR.Fingerprint] of the request that EKCO decided to approve.
	Fingerprint string `json:"fingerprint"`
}
