package journal

import "time"

// MaxSkew is how far EKCO's clock and the API server's may differ at a start for EKCO to trust the ages in the
// journal.
const MaxSkew = 30 * time.Second

// FarApart reports whether the clocks differed too much at a start; see [OperatorStarted.ClockSkew].
func FarApart(skew *Duration) bool {
	return skew != nil && time.Duration(*skew).Abs() >= MaxSkew
}
