package journal

// CSRInput is the input of an approve-csr.
type CSRInput struct {
	// Fingerprint is that of the request that was judged.
	Fingerprint string `json:"fingerprint"`
}
