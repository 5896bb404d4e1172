package journal

import "time"

// MaxSkew is the difference between EKCO's clock and the API server's at a start from which EKCO counts all ages from
// zero.
const MaxSkew = 30 * time.Second

// FarApart reports whether the clocks differed too much at a start; see [OperatorStarted.ClockSkew].
func FarApart(skew *Duration) bool {
	return skew != nil && time.Duration(*skew).Abs() >= MaxSkew
}
