package words

import (
	"strconv"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// stampLayout is the format of times in UTC.
const stampLayout = "2006-01-02T15:04:05Z"

// Stamp returns a time as text, in UTC with seconds.
func Stamp(at time.Time) string { return at.UTC().Format(stampLayout) }

// Span returns a duration as a short text: 0.41s, 12.3s, 5m10s, 26h3m, 3d4h.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return seconds(d.Round(10 * time.Millisecond))
	case d < time.Minute:
		return seconds(d.Round(100 * time.Millisecond))
	case d < time.Hour:
		return trimZero(d.Round(time.Second).String(), "m0s", "m")
	case d < 72*time.Hour:
		return trimZero(strings.TrimSuffix(d.Round(time.Minute).String(), "0s"), "h0m", "h")
	}
	hours := int(d.Round(time.Hour).Hours())
	return trimZero(strconv.Itoa(hours/24)+"d"+strconv.Itoa(hours%24)+"h", "d0h", "d")
}

// seconds does not use [time.Duration.Seconds], which rounds twice, so that 1.84 s would become 1.8399999999999999.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Second), 'f', -1, 64) + "s"
}

func trimZero(text, zero, short string) string {
	if cut, found := strings.CutSuffix(text, zero); found {
		return cut + short
	}
	return text
}

// Count returns "1 event", "2 events".
func Count[N int | uint64](n N, what string) string {
	text := strconv.FormatUint(uint64(n), 10) + " " + what
	if n != 1 {
		text += "s"
	}
	return text
}

// CountOf is [Count] for a phrase, or for a noun with an irregular plural.
func CountOf(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}

// Because returns ": " and the reason, or "" without a reason.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Held returns why an action waits: the reason, and the name of the preflight, which the documentation explains.
func Held(check, reason string) string {
	if reason == "" {
		return "check " + check
	}
	return reason + " (" + check + ")"
}

// Ended returns how an action ended and why. It does not repeat the outcome if the reason begins with it, as in
// "cancelled by cli:root@p1".
func Ended(outcome journal.Outcome, reason string) string {
	if strings.HasPrefix(reason, string(outcome)+" ") {
		return reason
	}
	return string(outcome) + Because(reason)
}

// Object names a subject in a sentence.
func Object(s journal.Subject) string {
	switch {
	case s.Kind == "Cluster" || s.Kind == "":
		return "everything"
	case s.Name == "":
		return strings.ToLower(s.Kind)
	}
	return strings.ToLower(s.Kind) + " " + s.Name
}
