package journal

// CSRInput is the input of an approve-csr.
type CSRInput struct {
	// Fingerprint is that of the judged request.
	Fingerprint string `json:"fingerprint"`
}
