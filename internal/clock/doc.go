// Package clock keeps EKCO's time.
//
// A machine's clock can be wrong, and can be set. Whether EKCO destroys something depends on how long a state has
// lasted. So EKCO counts the time that passes by the machine's monotonic clock, and does not subtract two readings of a
// clock that may have been set in between.
//
// A [Clock] starts with the machine's time, and adds the time that has passed since. It does not notice when
// the machine's clock is set: [Clock.Drift] returns the difference. The owner of the clock records that first,
// and then calls [Clock.Move]. [Clock.Continue] continues the clock of an earlier process of the same boot.
package clock
