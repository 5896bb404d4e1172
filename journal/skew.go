package journal

import "time"

// MaxSkew is how far EKCO's clock and the API server's may be apart at a start
// for the ages on record to be believed.
const MaxSkew = 30 * time.Second

// FarApart reports whether the clocks were too far apart at a start, as far as
// that is known; see [OperatorStarted.ClockSkew].
func FarApart(skew *Duration) bool {
	return skew != nil && time.Duration(*skew).Abs() >= MaxSkew
}
