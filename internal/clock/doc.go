// Package clock keeps EKCO's time.
//
// A machine's clock can be wrong, and can be set. What EKCO destroys depends on
// how long something has lasted, so EKCO counts the time that passes, by the
// machine's monotonic clock, and not the difference of two readings of a clock
// that somebody may have set in between.
//
// A [Clock] shows what the machine's clock showed when it was made, and what has
// passed since. It does not notice by itself that the machine's clock is
// elsewhere by now: [Clock.Drift] says how far, and whoever owns the clock
// writes that down first, and then moves it ([Clock.Move]). [Clock.Continue] has
// it go on from the clock of an earlier process of the same boot.
package clock
